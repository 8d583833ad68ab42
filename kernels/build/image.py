"""The release in the header of a kernel image (bzImage).

Source: Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header".
"""

from __future__ import annotations

import re
from pathlib import Path

from kernels.errors import UserMistake

_MAGIC_AT = 0x202
_MAGIC = b"HdrS"
_VERSION_POINTER = slice(0x20E, 0x210)
# The pointer is relative to the end of the boot sector.
_BOOT_SECTOR = 0x200
_HEADER = 1 << 16
# init/version.c: UTS_RELEASE, which has at most 64 characters (include/linux/utsname.h).
_RELEASE = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+~_-]{0,63}")


class NoKernelImage(UserMistake):
    """A file that is not a bzImage."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is no kernel image: {why}", "give the bzImage (or vmlinuz) of an x86 kernel"
        )


def release_of(path: Path) -> str:
    """The release (``uname -r``) of a bzImage.  Raises NoKernelImage."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError as error:
        raise NoKernelImage(path, error.strerror or str(error)) from error
    if header[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise NoKernelImage(path, "it has no setup header")
    start = int.from_bytes(header[_VERSION_POINTER], "little") + _BOOT_SECTOR
    words = header[start:].partition(b"\0")[0].split(None, 1)
    if not words:
        raise NoKernelImage(path, "its setup header has no release")
    release = words[0].decode("ascii", "replace")
    if not _RELEASE.fullmatch(release):
        # It becomes part of the kernel's id and of paths.
        raise NoKernelImage(path, f"its setup header has the release {release[:64]!r}")
    return release
