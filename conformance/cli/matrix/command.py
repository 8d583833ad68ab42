"""`uevt matrix`: judge many kernels, on this machine or on the workers of a scheduler."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.cli.matrix.cluster import connected, declare_security, silence
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.files import read_json
from conformance.results.results_json import NAME, read_results
from conformance.results.verdict import verdict_line
from conformance.session.launch import decisive_code, guest_mib, guests_that_fit
from conformance.session.options import (
    apply_defaults,
    declare_build,
    declare_verdict,
    default_options,
    groups_of,
    make_absolute,
)
from host.files import write_atomically
from host.text import is_terminal, one_line
from kernels.errors import UserMistake

if TYPE_CHECKING:
    from conformance.cli.matrix.kernel_spec import KernelSpec

# Options of `uevt run` for every kernel.
_OF_RUN = (
    *("keyword", "tier", "abi", "fail_on"),
    *("tree", "ref", "patch", "config", "flavour", "append"),
)
_STATE = "matrix.json"
_MISSING = "uevt matrix needs dask.distributed"
_INSTALL = "install it: .venv/bin/pip install -e '.[scale]'"


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    about = "judge many kernels, on several machines"
    usage = "uevt matrix (KERNEL… | --tree DIR | --resume DIR) [option …]"
    matrix = commands.add_parser("matrix", help=about, description=about, usage=usage)
    add = matrix.add_argument
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
    declare_security(matrix)
    group = groups_of(matrix)
    declare_build(group)
    declare_verdict(group)
    matrix.set_defaults(perform=_matrix)


def require_distributed() -> None:
    """Raise UserMistake without dask.distributed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UserMistake(_MISSING, _INSTALL) from error


def _matrix(arguments: argparse.Namespace) -> int:
    """The exit code of the worst kernel.  Raises KernelsError, ReportError, OSError."""
    silence()
    require_distributed()
    for name in ("workers", "shards"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise UserMistake(f"--{name} needs a number", "give 1 or more")
    directory = Path(arguments.resume or _begun(arguments)).absolute()
    names, left, shards = _recalled(directory, arguments)
    try:
        errors = _judge(arguments, directory, left, shards) if left else {}
    except KeyboardInterrupt:
        sys.stderr.write(f"uevt: to go on: uevt matrix --resume {directory}\n")
        raise
    return _conclude(directory, names, errors)


def _judge(
    arguments: argparse.Namespace,
    directory: Path,
    specs: Sequence[KernelSpec],
    shards: int | None,
) -> dict[str, str]:
    """Judge kernels; the errors of those that were not."""
    from conformance.cli.matrix.controller import Matrix
    from conformance.cli.matrix.progress import Screen

    flavour = specs[0].flavour
    workers = arguments.workers or guests_that_fit(flavour)
    with connected(arguments, workers, guest_mib(flavour)) as client:
        matrix = Matrix(client, directory, specs, shards)
        moving = is_terminal(sys.stdout, os.environ)
        screen = Screen(sys.stdout, matrix.columns, moving=moving)
        matrix.run(screen.show)
        screen.show(0, final=True)
    return matrix.errors


def _conclude(directory: Path, kernels: Sequence[str], errors: dict[str, str]) -> int:
    """Print the verdicts; the exit code."""
    from conformance.cli.merge import code_of

    codes = []
    for name in kernels:
        if name in errors:
            sys.stdout.write(f"uevt: {name}: not judged: {one_line(errors[name])}\n")
            codes.append(exit_code(Ending.HOST))
            continue
        record = read_results(directory / name / NAME)
        sys.stdout.write(verdict_line(record) + "\n")
        codes.append(code_of(record))
    return decisive_code(codes, ExitStyle.DEFAULT)


def _begun(arguments: argparse.Namespace) -> str:
    """Write down what to judge; the directory.  Raises KernelsError, ReportError, OSError."""
    from conformance.cli.matrix.kernel_spec import specified
    from conformance.results.directory import require_empty

    if not arguments.kernels and arguments.tree is None:
        raise UserMistake("no kernel named", "name some: uevt matrix 6.1 6.12 --out DIR")
    if arguments.out is None:
        raise UserMistake("no --out", "name a directory: --out results/matrix")
    kernels = {}
    for name in arguments.kernels or [None]:
        given = {option: getattr(arguments, option) for option in _OF_RUN}
        options = default_options(kernel=name, **given)
        make_absolute(options)
        apply_defaults(options)
        spec = specified(options)
        kernels[spec.id] = {"words": spec.words, "digest": spec.digest}
    directory = Path(arguments.out)
    require_empty(directory)
    directory.mkdir(parents=True, exist_ok=True)
    state = {"kernels": kernels, "shards": arguments.shards}
    write_atomically(directory / _STATE, json.dumps(state, indent=1) + "\n")
    return str(arguments.out)


def _recalled(
    directory: Path, arguments: argparse.Namespace
) -> tuple[list[str], list[KernelSpec], int | None]:
    """All kernels, those that are left, and the number of shards, as written down.

    Raises KernelsError, ReportError, OSError.
    """
    from conformance.cli.matrix.kernel_spec import options_of, specified

    others = ("kernels", "out", "shards", *_OF_RUN)
    if arguments.resume and any(getattr(arguments, name) for name in others):
        raise UserMistake("--resume takes kernels and options from DIR", "leave out the others")
    file = directory / _STATE
    if not file.is_file():
        raise ReportError(directory, "has no matrix to resume", "name the --out of uevt matrix")
    left = []
    try:
        state = read_json(file)
        kernels = dict(state["kernels"])
        for name, known in kernels.items():
            if not (directory / name / NAME).is_file():
                left.append(specified(options_of(known["words"])))
                if (left[-1].id, left[-1].digest) != (name, known["digest"]):
                    what = f"has {name} with another patch, configuration or source"
                    raise ReportError(directory, what, "restore that, or start a new matrix")
        return list(kernels), left, state["shards"]
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError.malformed(file, "is not the state of a matrix") from error
