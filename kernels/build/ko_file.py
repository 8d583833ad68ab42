"""Read a module's file (.ko): its name and the kernel it was built for.

Source: include/linux/module.h, MODULE_INFO: `key=value` texts in the section .modinfo, each ended
by a NUL (kernel/module/main.c:get_modinfo()).
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from host.files import open_regular
from kernels.errors import UserMistake

_ELF = b"\x7fELF"
# e_type of the ELF header.
_TYPE = slice(16, 18)
_RELOCATABLE = 1
_NAME = re.compile(r"\w+")


class NoModule(UserMistake):
    """A file that is not a module, or not for this kernel."""

    def __init__(self, path: Path, why: str, hint: str) -> None:
        super().__init__(f"{path} {why}", hint)


class ModuleFile(Struct, frozen=True):
    """A module's file.  `vermagic` begins with the release of its kernel."""

    path: Path
    name: str
    vermagic: str

    @property
    def release(self) -> str:
        """The kernel release that it was built for."""
        return self.vermagic.partition(" ")[0]

    def require(self, release: str) -> None:
        """Raise NoModule unless it was built for a kernel of this release.

        Only the kernel can check the rest of vermagic (SMP, preempt …).
        """
        if self.release != release:
            why = f"was built for {self.release} (vermagic {self.vermagic!r}), not for {release}"
            raise NoModule(self.path, why, "build it against the tree of this kernel")


def modinfo(content: bytes, key: str) -> str:
    """The value of a key of .modinfo; "" if the module has no such key."""
    found = re.search(rb"\0" + re.escape(key.encode()) + rb"=([^\0]+)\0", content)
    return found[1].decode("ascii", "replace") if found else ""


def read_module(path: Path) -> ModuleFile:
    """Read a module's file.  Raises NoModule."""
    try:
        with open_regular(path) as file:
            content = file.read()
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise NoModule(path, why, "give a readable .ko") from error
    if not content.startswith(_ELF):
        raise NoModule(path, "is no module: it is not an ELF file", "decompress it")
    name, vermagic = modinfo(content, "name"), modinfo(content, "vermagic")
    kind = int.from_bytes(content[_TYPE], "little")
    if kind != _RELOCATABLE or not _NAME.fullmatch(name) or not vermagic:
        why = "is no module: it has no name or no vermagic"
        raise NoModule(path, why, "give the .ko, not one of its objects")
    return ModuleFile(path, name, vermagic)
