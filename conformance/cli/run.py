"""`uevt run`: one pytest session per kernel, and one exit code for all."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.outcome import Level
from conformance.session.launch import ROOT, decisive_code, run_here, session
from conformance.session.options import (
    CASES,
    KERNEL,
    OUTPUT,
    STDOUT,
    VERDICT,
    apply_defaults,
    groups_of,
    make_absolute,
    open_ktap,
    replaced,
)
from conformance.session.options import declare as declare_options
from kernels.errors import UserMistake


class _Once(argparse.Action):
    """An option whose second use is an error, instead of replacing the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Store the value."""
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string} is given twice; join them: {option_string} 'A or B'")
        setattr(namespace, self.dest, values)


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "uevt run (--kernel K | --tree DIR | --image FILE | --here) [option …]"
    group = groups_of(parser)
    about = "6.12, 6.12@REVISION or model"
    group(KERNEL)("--kernel", action="append", default=[], metavar="K", help=about)
    about = "only cases with EXPR in their ids, such as 'write or status'"
    group(CASES)("-k", dest="keyword", metavar="EXPR", action=_Once, help=about)
    about = "number of guests (default: as cores and memory allow, fewer for a short run)"
    group(CASES)("-n", "--guests", type=int, metavar="N", help=about)
    about = "run without --patch as well, and compare"
    group(VERDICT)("--against", choices=["base"], help=about)
    about = "a line per failed case, and the verdict"
    group(OUTPUT)("-q", "--quiet", action="store_true", help=about)
    declare_options(group)
    # pytest has an option of this name.
    detail = {"dest": "fail_on", "action": "store_const", "const": Level.DETAIL.value}
    group(VERDICT)("--strict", help="the same as --fail-on detail", **detail)
    parser.set_defaults(perform=_run)


def _run(arguments: argparse.Namespace) -> int:
    """Run one pytest session per kernel; the worst of their exit codes.

    Raises UserMistake, ReportError.
    """
    # Sessions run in the checkout.
    make_absolute(arguments)
    arguments.kernel = list(dict.fromkeys(arguments.kernel))
    if arguments.resume is not None and len(arguments.kernel) <= 1:
        arguments = _resumed(arguments)
    apply_defaults(arguments)
    if arguments.keyword is not None and not arguments.keyword.strip():
        raise UserMistake("-k is empty", "give a part of a case id, or leave out -k for all cases")
    kernels: list[str] = arguments.kernel
    own = [name for name in ("image", "tree", "here") if getattr(arguments, name) is not None]
    if not kernels and not own:
        which = "--kernel 6.12, --kernel model, --tree DIR, --image FILE or --here"
        raise UserMistake("no kernel named", f"name one: {which}")
    if kernels and own:
        raise UserMistake(f"--kernel and --{own[0]} exclude each other", "give one of them")
    if arguments.guests is not None and arguments.guests < 1:
        raise UserMistake("-n needs a number of guests", "give 1 or more")
    if arguments.ktap == STDOUT:
        arguments.ktap = f"/dev/fd/{_own_stdout()}"
    if len(kernels) <= 1 and arguments.against is None:
        return run_here(arguments, kernels[0] if kernels else None, arguments.out)
    return _several(arguments, kernels or [None])


def _resumed(arguments: argparse.Namespace) -> argparse.Namespace:
    """Arguments filled from the run in --resume DIR.

    Raises ReportError.
    """
    if arguments.against is not None:
        what = "--against makes two runs, and --resume continues one"
        raise ReportError(Path(arguments.resume), what, "resume each, then uevt compare BASE NEW")
    only = next(iter(arguments.kernel), None)
    from conformance.session.controller.resume import recall_options

    filled = replaced(arguments, kernel=only)
    recall_options(filled)
    filled.kernel = [] if filled.kernel is None else [filled.kernel]
    return filled


def _several(arguments: argparse.Namespace, kernels: Sequence[str | None]) -> int:
    """Run one session per kernel, or two with --against; SIGINT and SIGTERM end all."""
    from conformance.cli.run_against import judge, require_patches
    from conformance.report.export.github import share
    from conformance.report.export.ktap_stream import KtapRuns
    from conformance.session.controller.run_directory import check_directory

    style = ExitStyle(arguments.exit_style)
    # Check every kernel before the first run.
    if arguments.against is not None:
        for kernel in kernels:
            require_patches(arguments, kernel)
    each = [_for_one_kernel(arguments, kernel) for kernel in kernels]
    for one in each:
        check_directory(one)
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
    return decisive_code(codes, style)


def _own_stdout() -> int:
    """Duplicate standard output, and replace it by standard error; the new descriptor."""
    number = os.dup(sys.stdout.fileno())
    os.set_inheritable(number, True)
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return number


def _for_one_kernel(arguments: argparse.Namespace, kernel: str | None) -> argparse.Namespace:
    """The arguments for one of several kernels, with a results directory of its own."""
    from conformance.session.target.target import kernel_id

    one = replaced(arguments, kernel=kernel)
    name = kernel_id(one)
    for option in ("out", "resume"):
        if getattr(one, option) is not None:
            setattr(one, option, str(Path(getattr(one, option)) / name))
    return one
