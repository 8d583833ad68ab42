"""The command `uevt`: a thin coat over the pytest plugin, the build store and the guests."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.options import STDOUT, declare, make_absolute, open_ktap, words
from conformance.report.errors import ReportError
from conformance.report.exits import Ending, ExitStyle, exit_code, worst
from conformance.report.ktap_stream import KtapRuns
from kernels.catalog import KernelEntry, load_catalog
from kernels.errors import (
    KernelsError,
    KernelTrouble,
    MissingTool,
    SourceUnavailable,
    UserMistake,
)
from kernels.progress import StreamProgress
from kernels.store import Store
from vm.leash import __file__ as LEASH

_ROOT = Path(__file__).parents[1]
# Guests side by side when nobody says how many: each wants a core of its own, and memory of its
# own with the process that runs its cases.  Beyond some, starting them takes longer than they save.
_MOST_GUESTS = 8
_GUEST_MIB = 800
_MEMORY = Path("/proc/meminfo")
# Variables that name a directory, from where the user is.
_DIRECTORIES = ("UEVT_CACHE", "UEVT_TARBALLS")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    style = _style(argv)
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.perform(arguments)
        sys.stdout.flush()
    except SystemExit as ended:
        # argparse has told what is wrong, or helped.
        return exit_code(Ending.USAGE if ended.code else Ending.PASS, style)
    except (UserMistake, ReportError) as error:
        return _fail(error, Ending.USAGE, style)
    except KernelTrouble as error:
        return _fail(error, Ending.BUILD_FAILED, style)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_code(Ending.PASS)
    except (KernelsError, OSError) as error:
        return _fail(error, Ending.HOST, style)
    except KeyboardInterrupt:
        return exit_code(Ending.INTERRUPTED, style)
    return code


def _style(argv: Sequence[str] | None) -> ExitStyle:
    """The style asked for, whatever else is wrong with a command line."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--exit-style", type=ExitStyle, default=ExitStyle.DEFAULT)
    try:
        style: ExitStyle = parser.parse_known_args(argv)[0].exit_style
    except argparse.ArgumentError:
        return ExitStyle.DEFAULT
    return style


def _fail(error: Exception, ending: Ending, style: ExitStyle) -> int:
    mend = getattr(error, "mend", "")
    print(f"uevt: {error}" + (f"; {mend}" if mend else ""), file=sys.stderr)
    return exit_code(ending, style)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="uevt", description="Conformance suite for the Linux user_events ABI."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    doctor = commands.add_parser("doctor", help="say whether this machine can run the suite")
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.set_defaults(perform=_doctor)
    _add_kernels(commands)
    _add_run(commands)
    return parser


def _add_kernels(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    kernels = commands.add_parser("kernels", help="the kernels of the catalog")
    verbs = kernels.add_subparsers(required=True, metavar="VERB")
    for verb, perform, text in (
        ("list", _kernels_list, "all kernels: which are built, can be, cannot be and why"),
        ("build", _kernels_build, "build kernels that are not in the store"),
        ("path", _kernels_path, "print the bzImage of built kernels"),
    ):
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("kernel", nargs="*", metavar="KERNEL")
        parser.set_defaults(perform=perform)
        if verb == "list":
            parser.add_argument("--json", action="store_true", help="for programs")
            parser.add_argument(
                "--buildable",
                action="store_true",
                help="only names: those of all kernels (or of KERNEL…) that are built or can be",
            )
        if verb == "build":
            parser.add_argument("--refresh", action="store_true", help="ask for newer revisions")


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser("run", help="judge kernels")
    add = run.add_argument
    add("--kernel", action="append", default=[], metavar="K", help="6.12, 6.12@REVISION or model")
    add("-k", dest="keyword", metavar="EXPR", help="only cases with EXPR in their ids")
    add("-q", "--quiet", action="store_true", help="a line per unexpected case, and the verdict")
    add(
        "-n",
        "--guests",
        type=int,
        metavar="N",
        help="guests side by side (default: as cores and memory allow)",
    )
    declare(add)
    run.set_defaults(perform=_run)


# kernels


def _entries(names: Sequence[str]) -> list[KernelEntry]:
    catalog = load_catalog()
    return [catalog.find(name) for name in names] if names else list(catalog.default())


def _kernels_list(arguments: argparse.Namespace) -> int:
    from kernels.availability import State, survey

    if arguments.buildable:
        found = survey(_entries(arguments.kernel), Store())
        for one in found:
            if one.state is not State.UNBUILDABLE:
                print(one.entry.kernel_id)
        return 0
    catalog = load_catalog()
    chosen = [catalog.find(name) for name in arguments.kernel] or catalog.entries.values()
    found = survey(chosen, Store())
    if arguments.json:
        print(json.dumps([one.to_json() for one in found], indent=1))
        return 0
    for one in found:
        source = f"variant of {one.entry.of}" if one.entry.of else str(one.entry.source)
        print(f"{one.entry.kernel_id:<25} {source:<37} {one}")
    return 0


def _kernels_build(arguments: argparse.Namespace) -> int:
    from kernels.build import ensure

    built = 0
    for entry in _entries(arguments.kernel):
        progress = StreamProgress(sys.stderr)
        try:
            print(ensure(entry, Store(), progress=progress, refresh=arguments.refresh).image)
            built += 1
        except (MissingTool, SourceUnavailable) as error:
            if arguments.kernel:
                raise
            # "All kernels" are those that can be built here.
            print(f"uevt: {entry.kernel_id} is left out: {error}; {error.mend}", file=sys.stderr)
    return exit_code(Ending.PASS if built else Ending.HOST)


def _kernels_path(arguments: argparse.Namespace) -> int:
    store = Store()
    for entry in _entries(arguments.kernel):
        built = store.lookup(entry)
        if built is None:
            name = entry.kernel_id
            print(f"uevt: {name} is not built; uevt kernels build {name}", file=sys.stderr)
            return exit_code(Ending.HOST)
        print(built.image)
    return 0


# doctor


def _doctor(arguments: argparse.Namespace) -> int:
    from conformance.plugin.doctor import examine

    findings = examine()
    if arguments.json:
        print(json.dumps([finding.to_json() for finding in findings], indent=1))
    else:
        for finding in findings:
            print(finding)
    return exit_code(Ending.PASS if all(finding.ok for finding in findings) else Ending.HOST)


# run


def _run(arguments: argparse.Namespace) -> int:
    """One pytest session for each kernel; the worst of their exit codes."""
    style = ExitStyle(arguments.exit_style)
    kernels: list[str] = arguments.kernel
    # The session runs in the checkout.
    make_absolute(arguments)
    for name in _DIRECTORIES:
        if os.environ.get(name):
            os.environ[name] = str(Path(os.environ[name]).absolute())
    if len(kernels) + (arguments.image is not None) == 0:
        print("uevt: name a kernel: --kernel 6.12, --kernel model or --image FILE", file=sys.stderr)
        return exit_code(Ending.USAGE, style)
    if len(kernels) > 1 and arguments.image is not None:
        print("uevt: --kernel and --image exclude each other; give one of them", file=sys.stderr)
        return exit_code(Ending.USAGE, style)
    if arguments.guests is not None and arguments.guests < 1:
        print("uevt: -n needs a number of guests, 1 or more", file=sys.stderr)
        return exit_code(Ending.USAGE, style)
    if arguments.ktap == STDOUT:
        arguments.ktap = f"/dev/fd/{_own_stdout()}"
    if len(kernels) <= 1:
        session = _session(arguments, kernels[0] if kernels else None, arguments.out)
        os.chdir(_ROOT)
        # Nothing is left to do here: this process becomes pytest, and its end is ours.
        os.execve(session[0], session, _environment())
    ktap = open_ktap(arguments.ktap)
    runs = None if ktap is None else KtapRuns(ktap, len(kernels))
    codes = []
    for kernel in kernels:
        out = None if arguments.out is None else str(Path(arguments.out) / kernel)
        codes.append(_child(arguments, kernel, out, runs))
        if codes[-1] == exit_code(Ending.INTERRUPTED, style):
            if runs is not None:
                runs.bail_out("interrupted")
            break
    return decisive(codes, style)


def _own_stdout() -> int:
    """Standard output by another number; whoever writes to it as before gets standard error."""
    number = os.dup(sys.stdout.fileno())
    os.set_inheritable(number, True)
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return number


def decisive(codes: Sequence[int], style: ExitStyle) -> int:
    """The exit code for several kernels: that of the ending that comes first in ``Ending``.

    A code no ending has (a session that was killed) counts as trouble of the host.
    """
    endings = {exit_code(ending, style): ending for ending in reversed(Ending)}
    return exit_code(worst([endings.get(code, Ending.HOST) for code in codes]), style)


def _child(
    arguments: argparse.Namespace, kernel: str, out: str | None, runs: KtapRuns | None
) -> int:
    """A session in a process of its own, which ends with this one and decides about Ctrl-C."""
    leash = [sys.executable, "-I", "-S", LEASH, str(os.getpid())]
    ours, theirs = os.pipe()
    if runs is not None:
        arguments.ktap = f"/dev/fd/{theirs}"
    command = leash + _session(arguments, kernel, out)
    with (
        os.fdopen(ours, encoding="utf-8") as ktap,
        subprocess.Popen(command, cwd=_ROOT, env=_environment(), pass_fds=[theirs]) as child,
    ):
        os.close(theirs)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            if runs is not None:
                runs.run(kernel, ktap)
            return child.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _guests_that_fit() -> int:
    """As many as there are cores and memory for, at least one."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", _MEMORY.read_text(), re.MULTILINE)
    memory = int(found[1]) // 1024 // _GUEST_MIB if found else _MOST_GUESTS
    return max(1, min(len(os.sched_getaffinity(0)), memory, _MOST_GUESTS))


def _environment() -> dict[str, str]:
    """Ours, with byte code allowed: making it takes longer than running the model."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _session(arguments: argparse.Namespace, kernel: str | None, out: str | None) -> list[str]:
    """The command of one pytest session."""
    options = [sys.executable, "-m", "pytest", "conformance/cases", "--tb=no"]
    # What people see is ours alone: see conformance.report.live.
    options += ["-p", "no:terminalreporter"]
    if arguments.quiet:
        options.append("-q")
    # Plugins that a run of cases has no use for, but waits for.
    options += ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:junitxml"]
    if kernel is not None:
        options.append(f"--kernel={kernel}")
    if arguments.keyword is not None:
        options.append(f"-k{arguments.keyword}")
    options += words(argparse.Namespace(**{**vars(arguments), "out": out}))
    guests = arguments.guests or _guests_that_fit()
    if guests > 1 and kernel != "model":
        options += ["-n", str(guests), "--dist", "worksteal"]
    return options
