"""The pytest sessions behind `uevt run`: their command, their environment, their end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from conformance.results.exit_codes import Ending, ExitStyle, exit_code, worst
from conformance.session.options import descriptors, words
from host.die_with_parent import __file__ as LEASH

if TYPE_CHECKING:
    from conformance.report.export.ktap_stream import KtapRuns

ROOT = Path(__file__).parents[2]
_SESSION = ("-m", "conformance.session.__main__")

# Guests side by side when nobody says how many: each wants a core of its own, and memory of its
# own with the process that runs its cases.  Beyond some, starting them takes longer than they save.
_MOST_GUESTS = 8
_GUEST_MIB = 512
_BESIDE_MIB = 300
_MEMORY = Path("/proc/meminfo")
# What a container may have of it: control groups of version 2, and of version 1.
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
# Words for pytest of somebody's own, and what takes assertions away.  Byte code is allowed: making
# it takes longer than running the model.
_NOT_HANDED_ON = frozenset(
    {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONOPTIMIZE", "PYTHONDONTWRITEBYTECODE"}
)
# Variables that name a directory, from where the user is.
_DIRECTORIES = ("UEVT_CACHE", "UEVT_TARBALLS")


class Session(Protocol):
    """What `session` does for who asks for a run and is told where to put it."""

    def __call__(
        self,
        arguments: Namespace,
        kernel: str | None,
        out: str,
        /,
        said: IO[str] | None = None,
        runs: KtapRuns | None = None,
        remarks: IO[str] | None = None,
    ) -> int:
        """Its exit code."""


def make_directories_absolute() -> None:
    """Let variables that name directories do so from the checkout, where sessions run."""
    for name in _DIRECTORIES:
        if os.environ.get(name):
            os.environ[name] = str(Path(os.environ[name]).absolute())


def run_here(arguments: Namespace, kernel: str | None, out: str | None) -> int:
    """Be a session, in this process: its exit code.  Raises OSError."""
    words, environment = _words(arguments, kernel, out), _environment()
    os.chdir(ROOT)
    if sys.flags.optimize or sys.dont_write_bytecode:
        # The interpreter was told so when it began, and is not told again.
        os.execve(sys.executable, [sys.executable, *_SESSION, *words], environment)
    os.environ.clear()
    os.environ.update(environment)
    # Imported when asked: nobody else waits for pytest.
    from conformance.session.__main__ import main

    return main(words)


def session(
    arguments: Namespace,
    kernel: str | None,
    out: str | None,
    said: IO[str] | None = None,
    runs: KtapRuns | None = None,
    remarks: IO[str] | None = None,
) -> int:
    """A session in a process of its own, which ends with this one and decides about Ctrl-C.

    ``said`` takes its standard output, ``remarks`` its standard error; ``runs`` its KTAP, as one
    of several.  Returns its exit code; that of an interruption when somebody asked us to end.
    """
    ours, theirs = os.pipe()
    if runs is not None:
        arguments = Namespace(**{**vars(arguments), "ktap": f"/dev/fd/{theirs}"})
    leash = [sys.executable, "-I", "-S", LEASH, str(os.getpid())]
    passed = descriptors(arguments)
    with (
        os.fdopen(ours, encoding="utf-8") as ktap,
        subprocess.Popen(
            [*leash, sys.executable, *_SESSION, *_words(arguments, kernel, out)],
            cwd=ROOT,
            env=_environment(),
            stdout=said,
            stderr=remarks,
            pass_fds=passed,
        ) as child,
    ):
        os.close(theirs)
        with _signals_left_to(child) as asked:
            if runs is not None:
                runs.run(str(kernel), ktap)
            code = child.wait()
    # A session that had not begun to listen dies of it, and has no code of its own.
    return exit_code(Ending.INTERRUPTED, ExitStyle(arguments.exit_style)) if asked else code


@contextmanager
def _signals_left_to(child: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Leave it to a child how to end; what we were asked by is in the list.

    A terminal sends Ctrl-C to both, who sends SIGTERM sends it to us alone.
    """
    asked: list[int] = []

    def hand_on(number: int, _: object) -> None:
        asked.append(number)
        child.send_signal(number)

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, hand_on),
    }
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def decisive_code(codes: Sequence[int], style: ExitStyle) -> int:
    """The exit code for several kernels: that of the ending that comes first in ``Ending``.

    A code no ending has (a session that was killed) counts as trouble of the host.
    """
    endings = {exit_code(ending, style): ending for ending in reversed(Ending)}
    return exit_code(worst([endings.get(code, Ending.HOST) for code in codes]), style)


def _guests_that_fit(name: str | None) -> int:
    """As many of a flavour as there are cores and memory for, at least one."""
    needed = (_GUEST_MIB if name is None else _memory_of(name)) + _BESIDE_MIB
    fitting = [mib // needed for mib in _memory_mib()]
    return max(1, min(len(os.sched_getaffinity(0)), _MOST_GUESTS, *fitting))


def _memory_of(name: str) -> int:
    # Imported when asked: most runs are of no flavour.
    from kernels.catalog.flavours import flavour

    return flavour(name).memory_mib


def _memory_mib() -> Iterator[int]:
    """What is free, and what we may have of it, as far as either is known."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", _MEMORY.read_text(), re.MULTILINE)
    if found:
        yield int(found[1]) >> 10
    for file in _LIMITS:
        # Not there, or "max".
        with suppress(OSError, ValueError):
            yield int(file.read_text()) >> 20


def _environment() -> dict[str, str]:
    """Ours, but for what would make another run of it than the one asked for."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON}
    # Of the plugins that somebody has installed it gets those that it needs.
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _words(arguments: Namespace, kernel: str | None, out: str | None) -> list[str]:
    """What one pytest session is told."""
    # Nothing that lies about changes what is run.
    options = ["conformance/cases", "-c", "pyproject.toml", "--noconftest", "-p", "uevt"]
    # See conformance.runner.assertion_text.
    options += ["--tb=no", "--assert=plain"]
    # What people see is ours alone: see conformance.report.terminal.progress.
    options += ["-p", "no:terminalreporter"]
    if arguments.quiet:
        options.append("-q")
    # Plugins that a run of cases has no use for, but waits for.
    options += ["-p", "no:cacheprovider", "-p", "no:junitxml"]
    options += ["-p", "no:tmpdir", "-p", "no:logging", "-s"]
    options += ["-p", "no:doctest", "-p", "no:unittest", "-p", "no:legacypath"]
    if kernel is not None:
        options.append(f"--kernel={kernel}")
    if arguments.keyword is not None:
        options.append(f"-k{arguments.keyword}")
    options += words(Namespace(**{**vars(arguments), "out": out}))
    guests = arguments.guests or _guests_that_fit(arguments.flavour)
    if kernel != "model":
        options.append(f"--guests={guests}")
    return options
