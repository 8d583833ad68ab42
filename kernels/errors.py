"""Errors on the way to a kernel image, by who must act.

`UserMistake`: the user who typed the command or edited the file.  `HostTrouble`: the administrator
of the host.  `KernelTrouble`: the author of a change to the kernel or its configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from host.errors import FileError, UevtError
from host.packages import install_command

if TYPE_CHECKING:
    from kernels.kconfig import LostOption

MIB = 1024 * 1024


class KernelsError(UevtError):
    """Base of every error of this package."""


class UserMistake(KernelsError):
    """The request is wrong; repeating it cannot help."""


class HostTrouble(KernelsError):
    """The host lacks something: a tool, space, a source, a free lock."""


class KernelTrouble(KernelsError):
    """The requested image cannot be made from the kernel's source or configuration."""


class UnknownKernel(UserMistake):
    """No catalog entry has this name."""

    def __init__(self, name: str, known: Sequence[str], closest: str | None) -> None:
        hint = f"did you mean {closest}? " if closest else ""
        listed = ", ".join(known) or "none at all"
        super().__init__(f"unknown kernel {name!r}", f"{hint}the catalog has: {listed}")


class UnknownRevision(UserMistake):
    """The source of the kernel is not offered in this revision."""

    def __init__(self, package: str, revision: str, offered: Sequence[str]) -> None:
        super().__init__(
            f"{package} is not offered in revision {revision!r}",
            f"the offered revisions are: {', '.join(offered)}",
        )


class BadCatalogEntry(FileError, UserMistake):
    """A catalog file that cannot be used."""


class BrokenFile(UserMistake):
    """A file given on the command line that cannot be used."""

    def __init__(self, path: Path, why: str, hint: str) -> None:
        super().__init__(f"{path}: {why}", hint)


class PatchRefused(UserMistake):
    """A patch of the user does not apply."""

    def __init__(self, name: str, source: str, failures: Sequence[str]) -> None:
        super().__init__(
            f"{name} does not apply to {source}: {'; '.join(failures)}",
            "rebase it onto that source, or choose the kernel that it was made for",
        )


class StoreFull(HostTrouble):
    """Too little space for the next step; without `needed_mib`, the disk filled up during it."""

    def __init__(self, where: Path, what: str, needed_mib: int | None, free_mib: int) -> None:
        needs = f"it needs about {needed_mib} MiB" if needed_mib is not None else "it filled up"
        super().__init__(
            f"no space for {what} in {where}: {needs}, {free_mib} MiB are free",
            "free some space there, or set UEVT_CACHE to a directory on a larger file system",
        )


class StoreBusy(HostTrouble):
    """Another process kept the store's lock for too long."""

    def __init__(self, holder: str, waited_s: float) -> None:
        super().__init__(
            f"waited {waited_s:.0f} s for the build store, which is held by {holder}",
            "wait for that process, or end it: interrupting a build is safe",
        )


class StoreUnusable(HostTrouble):
    """The store's directory cannot be created or written."""

    def __init__(self, where: Path, why: str) -> None:
        super().__init__(
            f"the build store {where} cannot be used: {why}",
            "set UEVT_CACHE to a writable directory, without space or colon in its path",
        )


class MissingTool(HostTrouble):
    """Programs or headers that this kernel needs are not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"missing on this host: {', '.join(names)}", install_command(names))


class SourceUnavailable(HostTrouble):
    """The source could not be obtained or unpacked."""


class TookTooLong(HostTrouble):
    """A step did not end by its deadline and was killed."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(
            f"{what} did not end within {seconds:.0f} s",
            "find out what keeps this host busy, then try again",
        )


class Killed(HostTrouble):
    """A program of a step was killed, which says nothing about the kernel."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was interrupted: one of its programs was killed",
            "check for the out-of-memory killer, then try again",
        )


class BuildFailed(KernelTrouble):
    """make failed; `log` is the whole output, `tail` the lines from the first error on."""

    def __init__(self, what: str, log: Path, tail: Sequence[str]) -> None:
        shown = "".join(f"\n    {line}" for line in tail)
        super().__init__(f"{what} failed{shown}", f"the whole output is in {log}")
        self.log = log
        self.tail = tuple(tail)


class LostOptions(KernelTrouble):
    """olddefconfig dropped or changed wanted options (a missing dependency, or a rename)."""

    def __init__(self, lost: Sequence[LostOption]) -> None:
        listed = "; ".join(str(option) for option in lost)
        super().__init__(
            f"{len(lost)} wanted options did not survive olddefconfig: {listed}",
            "add what they depend on to the kernel's fragments in kernels/config/",
        )
        self.lost = tuple(lost)
