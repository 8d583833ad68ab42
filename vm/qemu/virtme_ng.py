"""What virtme-ng would run: asked once, for asking it takes longer than restoring a guest."""

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

from host.files import write_atomically
from vm.errors import VirtmeMissing

#: The program and its options, each with its values.
Command = tuple[str, tuple[tuple[str, ...], ...]]

_SECONDS = 30.0
_RUN, _PACKAGE = "virtme-run", "virtme"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: A setting of the host that it hands on to guests.
_NR_OPEN = Path("/proc/sys/fs/nr_open")
#: Answers that are kept: of so many kernels, memories and numbers of processors.
_KEPT = 64
#: Who may write a file beside its owner.
_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@lru_cache(maxsize=16)
def virtme_command(
    kernel: Path, memory_mib: int, cpus: int, qemu: str, cache: Path | None
) -> Command:
    """What virtme-ng would run for a kernel on QEMU, the program of that path.

    Its answer is kept in ``cache``, a directory, for as long as the host's boot, virtme-ng, the
    two files and what it looks at beside them stay the same.  Raises VirtmeMissing.
    """
    # fmt: off
    command = [
        _program(),
        "--kimg", str(kernel), "--mods", "none", "--force-9p", "--disable-kvm",
        "--memory", f"{memory_mib}M", "--cpus", str(cpus), "--qemu-bin", qemu,
        "--disable-monitor", "--dry-run", "--show-command",
    ]
    # fmt: on
    kept = None if cache is None else _Kept.beside(cache, command, (kernel, Path(qemu)))
    words = kept.recall() if kept is not None else None
    if words is None:
        words = _ask(command)
        if kept is not None:
            kept.remember(words)
    program, *rest = words
    options: list[tuple[str, ...]] = []
    for word in rest:
        if word.startswith("-"):
            options.append((word,))
        elif options:
            options[-1] += (word,)
    return program, tuple(options)


def _ask(command: list[str]) -> list[str]:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
        words = shlex.split(done.stdout.strip().splitlines()[-1])
        if not words:
            raise ValueError("an empty line")
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise VirtmeMissing(
            f"virtme-run printed no QEMU command: {said.strip()}",
            hint=f"run it by hand: {shlex.join(command)}",
        ) from None
    return words


def _program() -> str:
    """virtme-run of the environment we run in, or any.  Raises VirtmeMissing."""
    if found := _ours() or shutil.which(_RUN):
        return found
    raise VirtmeMissing(
        "virtme-run is not installed", hint="install virtme-ng into this Python environment"
    )


def _ours() -> str | None:
    """virtme-run of the environment we run in, which need not be activated."""
    scripts = (sysconfig.get_path("scripts"), str(Path(sys.executable).parent))
    return next(filter(None, (shutil.which(_RUN, path=each) for each in scripts)), None)


class _Kept:
    """The answer to one command in a file of answers, which all have one host."""

    def __init__(self, file: Path, host: str, question: str) -> None:
        self._file = file
        self._host = host
        self._question = question

    @classmethod
    def beside(cls, cache: Path, command: list[str], files: tuple[Path, ...]) -> _Kept | None:
        """Where the answer to a command about files is kept; None where nobody can tell for how
        long it holds.
        """
        try:
            host = _digest(
                _BOOT_ID.read_text(),
                _NR_OPEN.read_text(),
                *map(_state_of, (Path(command[0]), *_package(command[0]))),
            )
            surroundings = (os.environ.get("TERM", ""), str(os.getuid()), str(Path.cwd()))
            question = _digest(*command, *surroundings, *map(_state_of, files))
        except OSError:
            return None
        return cls(cache / "virtme.json", host, question)

    def recall(self) -> list[str] | None:
        """The words of the answer, if there is one."""
        words = self._answers().get(self._question)
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return words
        return None

    def remember(self, words: list[str]) -> None:
        """Keep an answer, and of the others those that came last; where that can be done."""
        others = {key: said for key, said in self._answers().items() if key != self._question}
        last = dict(list(others.items())[1 - _KEPT :])
        kept = {"host": self._host, "answers": last | {self._question: words}}
        with suppress(OSError):
            write_atomically(self._file, json.dumps(kept, indent=1).encode())

    def _answers(self) -> dict[str, object]:
        """All that are of this host; what is absent, of another or damaged is only a cache.

        They are run: of somebody else's, whose cache may be read, or written, none is believed.
        """
        with (
            suppress(OSError, ValueError, KeyError, TypeError, RecursionError),
            self._file.open(encoding="utf-8") as file,
        ):
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or status.st_mode & _OF_OTHERS:
                return {}
            kept = json.load(file)
            if kept["host"] == self._host and isinstance(kept["answers"], dict):
                return dict(kept["answers"])
        return {}


def _package(program: str) -> list[Path]:
    """The files that a program of virtme-ng is made of.  Raises OSError where they are not ours."""
    found = importlib.util.find_spec(_PACKAGE) if program == _ours() else None
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(_PACKAGE)
    return [
        file
        for location in found.submodule_search_locations
        for file in sorted(Path(location).rglob("*.py"))
    ]


def _state_of(file: Path) -> str:
    """Changes with the content of a file.  Raises OSError."""
    status = file.stat()
    return f"{file.resolve()} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_size}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
