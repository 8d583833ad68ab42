"""The QEMU command of virtme-ng, cached: computing it takes longer than restoring a guest."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from host.files import write_record
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
    cached = None if cache is None else _CachedCommand.find(cache, command, (kernel, Path(qemu)))
    words = cached.load() if cached is not None else None
    if words is None:
        words = _run(command)
        if cached is not None:
            cached.save(words)
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
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VIRTME_S,
            check=True,
        )
        words = shlex.split(done.stdout.strip().splitlines()[-1])
        if not words:
            raise ValueError("an empty line")
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        output = getattr(error, "stderr", None) or str(error)
        raise VirtmeMissing(
            f"virtme-run printed no QEMU command: {output.strip()}",
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


class _CachedCommand:
    """The output of one virtme-ng call, in a JSON file for all calls on this host."""

    def __init__(self, file: Path, host: str, key: str) -> None:
        self._file = file
        self._host = host
        self._key = key

    @classmethod
    def find(
        cls, cache: Path, command: list[str], files: tuple[Path, ...]
    ) -> _CachedCommand | None:
        """The cache entry for a command about files; None if its validity cannot be checked."""
        try:
            host = _digest(
                _BOOT_ID.read_text(),
                _NR_OPEN.read_text(),
                *map(_state_of, (Path(command[0]), *_package(command[0]))),
            )
            environment = (os.environ.get("TERM", ""), str(os.getuid()), str(Path.cwd()))
            key = _digest(*command, *environment, *map(_state_of, files))
        except OSError:
            return None
        return cls(cache / "virtme.json", host, key)

    def load(self) -> list[str] | None:
        """The cached words, if any."""
        words = self._entries().get(self._key)
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return words
        return None

    def save(self, words: list[str]) -> None:
        """Store the words and drop the oldest entries; does nothing on a read-only cache."""
        others = {key: entry for key, entry in self._entries().items() if key != self._key}
        last = dict(list(others.items())[1 - _MAX_CACHED :])
        record = {"host": self._host, "answers": last | {self._key: words}}
        with suppress(OSError):
            write_record(self._file, record)

    def _entries(self) -> dict[str, object]:
        """All entries for this host; none if the file is absent, damaged or from another host.

        The commands are executed, so a file that another user owns or may write is ignored.
        """
        with (
            suppress(OSError, ValueError, KeyError, TypeError, RecursionError),
            self._file.open(encoding="utf-8") as file,
        ):
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or status.st_mode & _WRITABLE_BY_OTHERS:
                return {}
            record = json.load(file)
            if record["host"] == self._host and isinstance(record["answers"], dict):
                return dict(record["answers"])
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


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
