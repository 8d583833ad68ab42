"""What depends on the architecture of host and guests.  Another one begins here."""

from __future__ import annotations

ARCH = "x86_64"
"""kbuild's `ARCH=`, and QEMU's name for it."""

QEMU = f"qemu-system-{ARCH}"

CONSOLE = "ttyS0"
"""The guest's serial console."""

IMAGE = "bzImage"
"""kbuild's target for a bootable image."""

IMAGE_IN_OBJECTS = f"arch/x86/boot/{IMAGE}"
