"""The root of a guest's programs: the host's programs, read-only, and one directory to work in.

Only the directories of programs and libraries are exported, not the host's root, so that the guest
cannot read files of users.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from host.temporary_directories import scratch
from vm.qemu.command_line import Export

#: Where programs are, below /; those that are links lead to others.
PROGRAMS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu")
#: What programs read in /etc, and what is no secret.
_SETTINGS = (
    *("alternatives", "bash.bashrc", "bashrc", "group", "inputrc", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "nsswitch.conf", "os-release", "passwd", "terminfo"),
)
#: Where directories are whose files are links.
_BEHIND_LINKS = "/mnt"
_OPTIONS = "trans=virtio,version=9p2000.L,access=any,msize=524288"
#: Programs do not change; in the work directory the host's changes must be seen.  What was written
#: must be on the host when the guest ends or crashes: from 6.4 on cache=mmap delays writes as well,
#: except on a synchronous mount.
_CACHED, _COHERENT, _DIRECT = (f"{_OPTIONS},cache={each}" for each in ("loose", "mmap", "none"))
# Flags of mount(2).
_MS_RDONLY, _MS_SYNCHRONOUS = 1, 16
WORK = "/host"
"""Where the work directory is mounted."""
TOOLS = "/uevt"
"""Where a directory of uevt's own is mounted, if there is one."""


class Root(Struct, frozen=True):
    """Exports, and how the guest mounts and links them (`shell` of vm.agent.agent)."""

    exports: tuple[Export, ...]
    mounts: tuple[tuple[str, str, str, int], ...]
    links: tuple[tuple[str, str], ...]


@contextmanager
def root_of(
    work: Path | None,
    host: Path = Path("/"),
    tools: Path | None = None,
    more: Sequence[Path] = (),
) -> Iterator[Root]:
    """The root with the programs of ``host``, and ``work`` as WORK, writable.

    ``tools`` is a directory for TOOLS, writable as well.  ``more`` directories are read-only, and
    where they are on the host; a file is there as a link.  Without ``work`` all of it is read-only.
    Raises OSError.
    """
    found = [host / name for name in PROGRAMS if (host / name).is_dir()]
    programs = [path for path in found if not path.is_symlink()]
    links = tuple((f"/{p.name}", str(p.readlink())) for p in found if p.is_symlink())
    with scratch() as directory:
        settings = directory / "etc"
        settings.mkdir()
        for name in _SETTINGS:
            _copy(host / "etc" / name, settings / name)
        exports = [Export(path.name, path) for path in programs]
        exports.append(Export("etc", settings, writable=work is not None))
        if work is not None:
            exports.append(Export("host", work, writable=True))
        if tools is not None:
            exports.append(Export(TOOLS[1:], tools, writable=True))
        mounts = [_mount(export, f"/{export.tag}") for export in exports]
        for number, path in enumerate(more):
            exported, where = path, str(path)
            if path.is_file():
                exported, where = path.parent, f"{_BEHIND_LINKS}{path.parent}"
                links += ((str(path), f"{_BEHIND_LINKS}{path}"),)
            exports.append(Export(f"more{number}", exported))
            mounts.append(_mount(exports[-1], where))
        yield Root(tuple(exports), tuple(mounts), links)


def _mount(export: Export, where: str) -> tuple[str, str, str, int]:
    options = {WORK: _COHERENT, TOOLS: _DIRECT}.get(where, _CACHED)
    writable = _MS_SYNCHRONOUS if where == WORK else 0
    return export.tag, where, options, writable if export.writable else _MS_RDONLY


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a directory that exists and is readable."""
    with suppress(OSError, shutil.Error):
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copyfile(source, target)
