"""Check a kernel image (bzImage), and read the release in its header.

Source: Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header".
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from host.files import open_regular
from kernels.errors import UserMistake

_SETUP_SECTORS = slice(0x1F1, 0x1F2)
# What a value of 0 stands for.
_OLD_SETUP_SECTORS = 4
# In units of 16 bytes.
_PROTECTED_MODE_SIZE = slice(0x1F4, 0x1F8)
_MAGIC = slice(0x202, 0x206)
_PROTOCOL = slice(0x206, 0x208)
_VERSION_POINTER = slice(0x20E, 0x210)
_LOAD_FLAGS = slice(0x236, 0x238)  # xloadflags, since protocol 2.12
_HAS_LOAD_FLAGS = 0x20C
_KERNEL_64 = 1
# The version pointer is relative to the end of the boot sector.
_SECTOR = 0x200
_HEADER = 1 << 16
# init/version.c: UTS_RELEASE, which has at most 64 characters (include/linux/utsname.h).
_RELEASE = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+~_-]{0,63}")


class NoKernelImage(UserMistake):
    """A file that is not a bzImage."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is no kernel image: {why}", "give the bzImage (or vmlinuz) of an x86-64 kernel"
        )


def release_of(path: Path) -> str:
    """The release (``uname -r``) of a bzImage.  Raises NoKernelImage."""
    try:
        with open_regular(path) as file:
            header = file.read(_HEADER)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise NoKernelImage(path, error.strerror or str(error)) from error
    if header[_MAGIC] != b"HdrS":
        raise NoKernelImage(path, "it has no setup header")
    sectors = 1 + (_number(header, _SETUP_SECTORS) or _OLD_SETUP_SECTORS)
    whole = sectors * _SECTOR + _number(header, _PROTECTED_MODE_SIZE) * 16
    if size < whole:
        raise NoKernelImage(path, f"it is truncated: {size} of {whole} bytes")
    flags = _number(header, _LOAD_FLAGS)
    if _number(header, _PROTOCOL) >= _HAS_LOAD_FLAGS and not flags & _KERNEL_64:
        raise NoKernelImage(path, "it is a 32-bit kernel")
    start = _number(header, _VERSION_POINTER) + _SECTOR
    words = header[start:].partition(b"\0")[0].split(None, 1)
    if not words:
        raise NoKernelImage(path, "its setup header has no release")
    release = words[0].decode("ascii", "replace")
    if not _RELEASE.fullmatch(release):
        # It becomes part of the kernel's id and of paths.
        raise NoKernelImage(path, f"its setup header has the release {release[:64]!r}")
    return release


def _number(header: bytes, field: slice) -> int:
    return int.from_bytes(header[field], "little")
