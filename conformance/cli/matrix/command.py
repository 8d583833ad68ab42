"""`uevt matrix`: judge many kernels, on this machine or on the workers of a scheduler."""

from __future__ import annotations

import argparse
import os
import sys

from conformance.cli.matrix.cluster import connected, declare_security, require_distributed
from conformance.cli.matrix.controller import Matrix
from conformance.cli.matrix.plan import Plan, planned, recalled
from conformance.cli.matrix.progress import Screen
from conformance.cli.merge import code_of
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.results_json import NAME, read_results
from conformance.results.verdict import verdict_line
from conformance.session.launch import decisive_code, guest_mib, guests_that_fit
from conformance.session.options import declare_build, declare_verdict, groups_of
from host.text import is_terminal, one_line
from kernels.errors import UserMistake


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "uevt matrix (KERNEL… | --tree DIR | --resume DIR) [option …]"
    add = parser.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="a kernel of the catalog, or model")
    about = "tls:// address of a scheduler of dask (default: workers on this machine)"
    add("--scheduler", metavar="ADDRESS", help=about)
    about = "workers on this machine (default: as cores and memory allow)"
    add("--workers", type=int, metavar="N", help=about)
    add("--shards", type=int, metavar="N", help="shards per kernel (default: about a minute each)")
    add("-k", dest="keyword", metavar="EXPR", help="only cases with EXPR in their ids")
    about = "quick or full (default: full with --patch, --tree or --ref, else quick)"
    add("--tier", choices=["quick", "full"], help=about)
    add("--out", metavar="DIR", help="results directory, with one directory per kernel")
    add("--resume", metavar="DIR", help="continue the interrupted matrix in DIR")
    declare_security(parser)
    group = groups_of(parser)
    declare_build(group)
    declare_verdict(group)
    parser.set_defaults(perform=_matrix)


def _matrix(arguments: argparse.Namespace) -> int:
    """The exit code of the worst kernel.  Raises KernelsError, ReportError, OSError."""
    require_distributed()
    for name in ("workers", "shards"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise UserMistake(f"--{name} needs a number", "give 1 or more")
    plan = recalled(arguments) if arguments.resume else planned(arguments)
    try:
        errors = _judge(arguments, plan) if plan.left else {}
    except KeyboardInterrupt:
        if plan.is_written:
            sys.stderr.write(f"uevt: to go on: uevt matrix --resume {plan.directory}\n")
        raise
    return _conclude(plan, errors)


def _judge(arguments: argparse.Namespace, plan: Plan) -> dict[str, str]:
    """Judge the kernels that are left; the errors of those that were not judged."""
    flavour = plan.left[0].flavour
    workers = arguments.workers or guests_that_fit(flavour)
    # Without a connection there is nothing to resume.
    with connected(arguments, workers, guest_mib(flavour)) as client, plan.written():
        matrix = Matrix(client, plan.directory, plan.left, plan.shards)
        moving = is_terminal(sys.stdout, os.environ)
        screen = Screen(sys.stdout, matrix.columns, moving=moving)
        matrix.run(screen.show)
        screen.show(0, final=True)
    return matrix.errors


def _conclude(plan: Plan, errors: dict[str, str]) -> int:
    """Print the verdicts; the exit code."""
    codes = []
    for name in plan.kernels:
        if name in errors:
            sys.stdout.write(f"uevt: {name}: not judged: {one_line(errors[name])}\n")
            codes.append(exit_code(Ending.HOST))
            continue
        record = read_results(plan.directory / name / NAME)
        sys.stdout.write(verdict_line(record) + "\n")
        codes.append(code_of(record))
    return decisive_code(codes, ExitStyle.DEFAULT)
