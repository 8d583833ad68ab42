"""The command `uevt`: a thin coat over the pytest plugin, the build store and the guests."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.options import declare, make_absolute, words
from conformance.report.exits import Ending, ExitStyle, exit_code, worst
from kernels.catalog import KernelEntry, load_catalog
from kernels.errors import (
    BuildFailed,
    KernelsError,
    MissingTool,
    SourceUnavailable,
    UserMistake,
)
from kernels.progress import StreamProgress
from kernels.store import Store
from vm.leash import __file__ as LEASH

_ROOT = Path(__file__).parents[1]
# Guests side by side when nobody says how many: each wants a core of its own.
_MOST_GUESTS = 2
# Variables that name a directory, from where the user is.
_DIRECTORIES = ("UEVT_CACHE", "UEVT_TARBALLS")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.perform(arguments)
        sys.stdout.flush()
    except UserMistake as error:
        return _fail(error, Ending.USAGE)
    except BuildFailed as error:
        return _fail(error, Ending.BUILD_FAILED)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_code(Ending.PASS)
    except (KernelsError, OSError) as error:
        return _fail(error, Ending.HOST)
    except KeyboardInterrupt:
        return exit_code(Ending.INTERRUPTED)
    return code


def _fail(error: Exception, ending: Ending) -> int:
    mend = getattr(error, "mend", "")
    print(f"uevt: {error}" + (f"; {mend}" if mend else ""), file=sys.stderr)
    return exit_code(ending)


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
    add("-n", "--guests", type=int, metavar="N", help="guests side by side (default: 2 at most)")
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
            if one.state in (State.BUILT, State.BUILDABLE):
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
    own = [name for name in ("image", "tree") if getattr(arguments, name) is not None]
    if not kernels and not own:
        which = "--kernel 6.12, --kernel model, --tree DIR or --image FILE"
        print(f"uevt: name a kernel: {which}", file=sys.stderr)
        return exit_code(Ending.USAGE, style)
    if kernels and own:
        print(
            f"uevt: --kernel and --{own[0]} exclude each other; give one of them", file=sys.stderr
        )
        return exit_code(Ending.USAGE, style)
    if arguments.guests is not None and arguments.guests < 1:
        print("uevt: -n needs a number of guests, 1 or more", file=sys.stderr)
        return exit_code(Ending.USAGE, style)
    if len(kernels) <= 1:
        session = _session(arguments, kernels[0] if kernels else None, arguments.out)
        os.chdir(_ROOT)
        # Nothing is left to do here: this process becomes pytest, and its end is ours.
        os.execve(session[0], session, _environment())
    codes = []
    for kernel in kernels:
        out = None if arguments.out is None else str(Path(arguments.out) / kernel)
        codes.append(_child(arguments, kernel, out))
        if codes[-1] == exit_code(Ending.INTERRUPTED, style):
            break
    return decisive(codes, style)


def decisive(codes: Sequence[int], style: ExitStyle) -> int:
    """The exit code for several kernels: that of the ending that comes first in ``Ending``.

    A code no ending has (a session that was killed) counts as trouble of the host.
    """
    endings = {exit_code(ending, style): ending for ending in reversed(Ending)}
    return exit_code(worst([endings.get(code, Ending.HOST) for code in codes]), style)


def _child(arguments: argparse.Namespace, kernel: str, out: str | None) -> int:
    """A session in a process of its own, which ends with this one and decides about Ctrl-C."""
    leash = [sys.executable, "-I", "-S", LEASH, str(os.getpid())]
    with subprocess.Popen(
        leash + _session(arguments, kernel, out), cwd=_ROOT, env=_environment()
    ) as child:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return child.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _environment() -> dict[str, str]:
    """Ours, with byte code allowed: making it takes longer than running the model."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _session(arguments: argparse.Namespace, kernel: str | None, out: str | None) -> list[str]:
    """The command of one pytest session."""
    options = [sys.executable, "-m", "pytest", "conformance/cases"]
    options += ["-q", "--no-header", "--no-summary", "--tb=no"]
    # Plugins that a run of cases has no use for, but waits for.
    options += ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:junitxml"]
    if kernel is not None:
        options.append(f"--kernel={kernel}")
    if arguments.keyword is not None:
        options.append(f"-k{arguments.keyword}")
    options += words(argparse.Namespace(**{**vars(arguments), "out": out}))
    guests = arguments.guests or min(len(os.sched_getaffinity(0)), _MOST_GUESTS)
    if guests > 1 and kernel != "model":
        options += ["-n", str(guests), "--dist", "worksteal"]
    return options
