"""The command `uevt`: a thin coat over the pytest plugin, the build store and the guests."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance import (
    bisect_command,
    compare_command,
    expectations_command,
    export_command,
    history_command,
    kernel_commands,
    report_command,
)
from conformance.options import STDOUT, declare, make_absolute, open_ktap, settle
from conformance.report.errors import ReportError
from conformance.report.exits import Ending, ExitStyle, exit_code
from conformance.report.export.ktap_stream import KtapRuns
from conformance.resuming import recall
from conformance.sessions import ROOT, become, decisive, session, settle_directories
from kernels.errors import KernelsError, KernelTrouble, UserMistake

# What a shell reports for a program that SIGPIPE ended.
_UNHEARD = 128 + signal.SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    _open_standard()
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
        # Whoever read our output has gone, and has perhaps not seen what was wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _UNHEARD
    except (KernelsError, OSError) as error:
        return _fail(error, Ending.HOST, style)
    except KeyboardInterrupt:
        return exit_code(Ending.INTERRUPTED, style)
    return code


def _open_standard() -> None:
    """Let the three standard descriptors be open: a file of ours must not become one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest that is free.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


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
    kernel_commands.declare(commands)
    export_command.declare(commands)
    _add_run(commands)
    compare_command.declare(commands)
    report_command.declare(commands)
    history_command.declare(commands)
    expectations_command.declare(commands)
    bisect_command.declare(commands)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser("run", help="judge kernels")
    add = run.add_argument
    add("--kernel", action="append", default=[], metavar="K", help="6.12, 6.12@REVISION or model")
    add("-k", dest="keyword", metavar="EXPR", help="only cases with EXPR in their ids")
    add("-q", "--quiet", action="store_true", help="a line per unexpected case, and the verdict")
    add("-n", "--guests", type=int, metavar="N", help="guests side by side (default: what fits)")
    add("--against", choices=["base"], help="run without --patch as well, and compare")
    declare(add)
    run.set_defaults(perform=_run)


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
    # The session runs in the checkout.
    make_absolute(arguments)
    settle_directories()
    if arguments.resume is not None and len(arguments.kernel) <= 1:
        arguments = _resumed(arguments)
    settle(arguments)
    style = ExitStyle(arguments.exit_style)
    kernels: list[str] = arguments.kernel
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
    if arguments.ktap == STDOUT:
        arguments.ktap = f"/dev/fd/{_own_stdout()}"
    if len(kernels) <= 1 and arguments.against is None:
        become(arguments, kernels[0] if kernels else None, arguments.out)
    return _several(arguments, kernels or [None])


def _resumed(arguments: argparse.Namespace) -> argparse.Namespace:
    """With what the run in --resume DIR was asked, where nothing else is said.

    Raises ReportError.
    """
    if arguments.against is not None:
        what = "--against makes two runs, and --resume goes on with one"
        raise ReportError(Path(arguments.resume), what, "resume each, then uevt compare BASE NEW")
    only = next(iter(arguments.kernel), None)
    filled = argparse.Namespace(**{**vars(arguments), "kernel": only})
    recall(filled)
    filled.kernel = [] if filled.kernel is None else [filled.kernel]
    return filled


def _several(arguments: argparse.Namespace, kernels: Sequence[str | None]) -> int:
    """A session, or two, for each kernel; Ctrl-C and SIGTERM end the whole."""
    from conformance.against import judge, require_patches
    from conformance.report.export.github import share

    style = ExitStyle(arguments.exit_style)
    # Before anything runs: what is wrong with the last kernel is said at once.
    if arguments.against is not None:
        for kernel in kernels:
            require_patches(arguments, kernel)
    each = [_of_one(arguments, kernel) for kernel in kernels]
    ktap = open_ktap(arguments.ktap) if len(kernels) > 1 else None
    runs = None if ktap is None else KtapRuns(ktap, len(kernels))
    share(os.environ, len(kernels))
    codes: list[int] = []
    for kernel, one in zip(kernels, each, strict=True):
        if arguments.against is not None:
            codes += judge(arguments, kernel, session, ROOT / "results", runs)
        else:
            codes.append(session(one, kernel, one.out, runs=runs))
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


def _of_one(arguments: argparse.Namespace, kernel: str | None) -> argparse.Namespace:
    """The arguments of one of several kernels, whose results have a directory of their own."""
    from conformance.plugin.target import kernel_id

    one = argparse.Namespace(**{**vars(arguments), "kernel": kernel})
    name = kernel_id(one)
    for option in ("out", "resume"):
        if getattr(one, option) is not None:
            setattr(one, option, str(Path(getattr(one, option)) / name))
    return one
