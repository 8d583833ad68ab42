"""The initramfs of a kernel whose drivers are modules: virtme-ng's, with those that a guest needs.

Its init loads them in order, mounts the host's root as a kernel without modules does, and
goes on with our own init there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from host.temporary_directories import scratch
from vm.errors import HostTrouble
from vm.qemu import elf

#: What has to be loaded before there are a root and a channel, where it is not built in.
NEEDED = ("virtio_pci", "9pnet_virtio", "9p", "virtio_console")

_BUSYBOX = ("busybox-static", "busybox.static", "busybox")
#: The root of a guest that only reads, as in the kernel command line.
_ACCESS = "ro,cache=loose"


class BusyboxMissing(HostTrouble):
    """No busybox that runs without libraries."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}; the initramfs for a kernel with modules is made with it",
            hint="install it (Debian: apt install busybox-static; Fedora: dnf install busybox)",
        )


def pack(modules: Sequence[tuple[str, bytes]], directory: Path) -> Path:
    """An initramfs that loads modules, given by name and content in order, kept in a directory.

    Raises BusyboxMissing.
    """
    from virtme.mkinitramfs import Config, mkinitramfs

    busybox = _static_busybox()
    digest = hashlib.sha256(busybox.read_bytes())
    for name, content in modules:
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    place = directory / f"{digest.hexdigest()}.cpio"
    if place.is_file():
        return place
    directory.mkdir(parents=True, exist_ok=True)
    with scratch(directory) as work:
        config = Config()
        config.busybox = str(busybox)
        config.access = _ACCESS
        for name, content in modules:
            file = work / f"{name}.ko"
            file.write_bytes(content)
            config.modfiles.append(str(file))
        fresh = work / "initramfs"
        with fresh.open("wb") as out:
            mkinitramfs(out, config)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(place)
    return place


def _static_busybox() -> Path:
    found = [path for name in _BUSYBOX if (path := shutil.which(name))]
    if not found:
        raise BusyboxMissing("busybox is not installed")
    for path in found:
        if _runs_alone(Path(path)):
            return Path(path)
    raise BusyboxMissing(f"{found[0]} needs libraries")


def _runs_alone(program: Path) -> bool:
    """Whether it is a program that names no loader (elf(5): PT_INTERP)."""
    kinds = [segment.kind for segment in elf.segments(program)]
    return bool(kinds) and elf.PT_INTERP not in kinds
