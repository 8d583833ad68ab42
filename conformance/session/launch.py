"""The pytest sessions of `uevt run`: command, environment, signals, exit code."""

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
from conformance.session.options import descriptors, replaced, words
from host.die_with_parent import __file__ as LEASH
from kernels.errors import UserMistake

if TYPE_CHECKING:
    from conformance.report.export.ktap_stream import KtapRuns

ROOT = Path(__file__).parents[2]
_CONFIGURATION = "pyproject.toml"
_SESSION = ("-m", "conformance.session.__main__")

# Default number of guests: each needs a core, and memory for itself and its worker.  Starting more
# than eight takes longer than they save.
_MOST_GUESTS = 8
_GUEST_MIB = 512
_BESIDE_MIB = 300
_MEMORY = Path("/proc/meminfo")
# Memory limits of a container: control groups version 2 and 1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Variables that change pytest or disable assertions.  Byte code is written: compiling takes longer
# than a run on the model.
_NOT_HANDED_ON = frozenset(
    {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONOPTIMIZE", "PYTHONDONTWRITEBYTECODE"}
)


class Session(Protocol):
    """The signature of ``session``, for callers that are given it."""

    def __call__(
        self,
        arguments: Namespace,
        kernel: str | None,
        out: str,
        /,
        stdout: IO[str] | None = None,
        runs: KtapRuns | None = None,
        stderr: IO[str] | None = None,
    ) -> int:
        """The exit code."""


def run_here(arguments: Namespace, kernel: str | None, out: str | None) -> int:
    """Run a session in this process; its exit code.  Raises OSError, UserMistake."""
    words, environment = _words(arguments, kernel, out), _environment()
    os.chdir(ROOT)
    if sys.flags.optimize:
        # This flag of the interpreter cannot be changed; a new one starts without it.
        os.execve(sys.executable, [sys.executable, *_SESSION, *words], environment)
    os.environ.clear()
    os.environ.update(environment)
    # Imported late: other commands do not need pytest.
    from conformance.session.__main__ import main

    return main(words)


def session(
    arguments: Namespace,
    kernel: str | None,
    out: str | None,
    stdout: IO[str] | None = None,
    runs: KtapRuns | None = None,
    stderr: IO[str] | None = None,
) -> int:
    """Run a session in a child process, which dies with this one and handles Ctrl-C.

    ``stdout`` and ``stderr`` take its output, ``runs`` its KTAP as one of several.  Returns its
    exit code, or that of an interruption if a signal arrived.
    """
    ours, theirs = os.pipe()
    if runs is not None:
        arguments = replaced(arguments, ktap=f"/dev/fd/{theirs}")
    leash = [sys.executable, "-I", "-S", LEASH, str(os.getpid())]
    passed = descriptors(arguments)
    with (
        _signals_left_to_the_child() as signals,
        os.fdopen(ours, encoding="utf-8") as ktap,
        subprocess.Popen(
            [*leash, sys.executable, *_SESSION, *_words(arguments, kernel, out)],
            cwd=ROOT,
            env=_environment(),
            stdout=stdout,
            stderr=stderr,
            pass_fds=passed,
        ) as child,
    ):
        os.close(theirs)
        signals.forward_to(child)
        if runs is not None:
            runs.run(str(kernel), ktap)
        code = child.wait()
    # A signal may kill a session before it installs its handlers.
    terminated = exit_code(Ending.INTERRUPTED, ExitStyle(arguments.exit_style))
    return terminated if signals.received else code


class _Forwarded:
    """Signals for a child, which may not have started yet: forwarded as SIGTERM."""

    def __init__(self) -> None:
        self.received = False
        self._child: subprocess.Popen[bytes] | None = None

    def handle(self, *_: object) -> None:
        self.received = True
        if self._child is not None:
            self._child.terminate()

    def forward_to(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        if self.received:
            child.terminate()


@contextmanager
def _signals_left_to_the_child() -> Iterator[_Forwarded]:
    """Let a child decide how to end, from before it starts.

    Both are forwarded, since they may arrive here only.  After the SIGINT that a terminal sends to
    both processes the child ignores that (see `host.interruption`).
    """
    signals = _Forwarded()
    # SIGINT stays ignored, as in the background of a script.
    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, signals.handle) for number in numbers}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def decisive_code(codes: Sequence[int], style: ExitStyle) -> int:
    """The exit code for several kernels: that of their worst ending.

    A code that no ending has, as of a killed session, counts as Ending.HOST.
    """
    endings = {exit_code(ending, style): ending for ending in reversed(Ending)}
    return exit_code(worst([endings.get(code, Ending.HOST) for code in codes]), style)


def guests_that_fit(name: str | None) -> int:
    """The number of guests of a flavour that cores and memory allow, at least one."""
    fitting = free_mib() // guest_mib(name)
    return max(1, min(len(os.sched_getaffinity(0)), _MOST_GUESTS, fitting))


def guest_mib(name: str | None) -> int:
    """Memory in MiB of a guest of a flavour and its worker.  Raises UserMistake."""
    if name is None:
        return _GUEST_MIB + _BESIDE_MIB
    # Imported late: most runs have no flavour.
    from kernels.catalog.flavours import flavour

    return flavour(name).memory_mib + _BESIDE_MIB


def free_mib() -> int:
    """Memory in MiB that is free here, within the limits of the container, as far as known."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", _MEMORY.read_text(), re.MULTILINE)
    known = [int(found[1]) >> 10] if found else []
    for file in _LIMITS:
        # The file is missing, or contains "max".
        with suppress(OSError, ValueError):
            known.append(int(file.read_text()) >> 20)
    return min(known, default=sys.maxsize)


def _environment() -> dict[str, str]:
    """Our environment without variables that change the run, and with our working directory."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON}
    # The directory may have been removed.
    with suppress(FileNotFoundError):
        kept["UEVT_CWD"] = str(Path.cwd())
    # Installed plugins of pytest are not loaded.
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _words(arguments: Namespace, kernel: str | None, out: str | None) -> list[str]:
    """The command line of one pytest session.  Raises UserMistake."""
    if not (ROOT / _CONFIGURATION).is_file():
        what = f"{ROOT} has no {_CONFIGURATION}: uevt was installed without its checkout"
        raise UserMistake(what, "install it with pip install -e CHECKOUT")
    # No conftest.py or other configuration of the user applies.
    options = ["conformance/cases", "-c", _CONFIGURATION, "--noconftest", "-p", "uevt"]
    # See conformance.runner.assertion_text.
    options += ["--tb=no", "--assert=plain"]
    # Output comes from conformance.report.terminal.progress.
    options += ["-p", "no:terminalreporter"]
    if arguments.quiet:
        options.append("-q")
    # A warning of Python, as about a file that Ctrl-C leaves open, is no error of a run.
    options += ["-p", "no:warnings"]
    # Plugins that take time and that cases do not use.
    options += ["-p", "no:cacheprovider", "-p", "no:junitxml"]
    options += ["-p", "no:tmpdir", "-p", "no:logging", "-s"]
    options += ["-p", "no:doctest", "-p", "no:unittest", "-p", "no:legacypath"]
    if kernel is not None:
        options.append(f"--kernel={kernel}")
    if arguments.keyword is not None:
        options.append(f"-k{arguments.keyword}")
    options += words(replaced(arguments, out=out))
    # The running kernel is one guest; another number is refused by the session.
    if arguments.guests:
        options.append(f"--guests={arguments.guests}")
    elif not arguments.here:
        options.append(f"--most-guests={guests_that_fit(arguments.flavour)}")
    return options
