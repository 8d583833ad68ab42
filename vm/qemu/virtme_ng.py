"""The QEMU command of virtme-ng, cached: computing it takes longer than restoring a guest."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import stat
import sys
import sysconfig
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from host.files import write_record
from host.programs import ProgramFailed, output_of
from vm.errors import VirtmeMissing

#: The program, and its options with their values.
Command = tuple[str, tuple[tuple[str, ...], ...]]

_VIRTME_S = 30.0
_RUN, _PACKAGE = "virtme-run", "virtme"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: A host setting that virtme-ng passes to guests.
_NR_OPEN = Path("/proc/sys/fs/nr_open")
#: Maximum number of cached commands.
_MAX_CACHED = 64
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@lru_cache(maxsize=16)
def virtme_command(
    kernel: Path, memory_mib: int, cpus: int, qemu: str, cache: Path | None
) -> Command:
    """The command of virtme-ng for a kernel; `qemu` is the path of the program.

    The directory `cache` keeps it until the host reboots, or virtme-ng, the kernel, QEMU or the
    environment changes.  Raises VirtmeMissing.
    """
    # fmt: off
    command = [
        _program(),
        "--kimg", str(kernel), "--mods", "none", "--force-9p", "--disable-kvm",
        "--memory", f"{memory_mib}M", "--cpus", str(cpus), "--qemu-bin", qemu,
        "--disable-monitor", "--dry-run", "--show-command",
    ]
    # fmt: on
    key = None if cache is None else _cache_key(command, (kernel, Path(qemu)))
    if cache is None or key is None:
        words = _run(command)
    else:
        file = cache / "virtme.json"
        words = _load(file, key) or _save(file, key, _run(command))
    program, *rest = words
    options: list[tuple[str, ...]] = []
    for word in rest:
        if word.startswith("-"):
            options.append((word,))
        elif options:
            options[-1] += (word,)
    return program, tuple(options)


def _run(command: list[str]) -> list[str]:
    try:
        words = shlex.split(output_of(command, _VIRTME_S).strip().splitlines()[-1])
        if not words:
            raise ValueError("an empty line")
    except (ProgramFailed, ValueError, IndexError) as error:
        raise VirtmeMissing(
            f"virtme-run printed no QEMU command: {error}",
            hint=f"run it by hand: {shlex.join(command)}",
        ) from None
    return words


def _program() -> str:
    """virtme-run of this Python environment, or from PATH.  Raises VirtmeMissing."""
    if found := _installed() or shutil.which(_RUN):
        return found
    raise VirtmeMissing(
        "virtme-run is not installed", hint="install virtme-ng into this Python environment"
    )


def _installed() -> str | None:
    """virtme-run of this Python environment, which need not be activated."""
    scripts = (sysconfig.get_path("scripts"), str(Path(sys.executable).parent))
    return next(filter(None, (shutil.which(_RUN, path=each) for each in scripts)), None)


def _cache_key(command: list[str], files: tuple[Path, ...]) -> str | None:
    """A digest of all that the output depends on; None if that cannot be determined."""
    environment = (os.environ.get("TERM", ""), str(os.getuid()), str(Path.cwd()))
    try:
        host = (_BOOT_ID.read_text(), _NR_OPEN.read_text())
        files = (Path(command[0]), *_package(command[0]), *files)
        parts = (*host, *command, *environment, *map(_state_of, files))
    except OSError:
        return None
    # Names of files may be no UTF-8.
    return hashlib.sha256(os.fsencode("\0".join(parts))).hexdigest()


def _load(file: Path, key: str) -> list[str] | None:
    words = _entries(file).get(key)
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        return words
    return None


def _save(file: Path, key: str, words: list[str]) -> list[str]:
    """Store the words, if possible, and drop the oldest entries.  Returns the words."""
    others = {other: entry for other, entry in _entries(file).items() if other != key}
    with suppress(OSError):
        write_record(file, dict(list(others.items())[1 - _MAX_CACHED :]) | {key: words})
    return words


def _entries(file: Path) -> dict[str, object]:
    """All cached words by key.

    They are executed, so a file that another user owns or may write is ignored.
    """
    with suppress(OSError, ValueError, RecursionError), file.open(encoding="utf-8") as opened:
        status = os.fstat(opened.fileno())
        if status.st_uid == os.getuid() and not status.st_mode & _WRITABLE_BY_OTHERS:
            entries = json.load(opened)
            return dict(entries) if isinstance(entries, dict) else {}
    return {}


def _package(program: str) -> list[Path]:
    """The files of the virtme-ng package.  Raises OSError if the program belongs to another one."""
    found = importlib.util.find_spec(_PACKAGE) if program == _installed() else None
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(_PACKAGE)
    return [
        file
        for location in found.submodule_search_locations
        for file in sorted(Path(location).rglob("*.py"))
    ]


def _state_of(file: Path) -> str:
    """Identity, times and size of a file.  Raises OSError."""
    status = file.stat()
    return f"{file.resolve()} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_size}"
