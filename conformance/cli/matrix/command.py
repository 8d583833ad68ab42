"""`uevt matrix`: judge many kernels, on this machine or on the workers of a scheduler."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.cli.matrix.cluster import connected, declare_security, silence
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.files import read_json
from conformance.results.results_json import NAME, read_results
from conformance.results.verdict import verdict_line
from conformance.session.launch import decisive_code, guests_that_fit
from host.files import write_atomically
from host.text import is_terminal, one_line
from kernels.errors import HostTrouble, UserMistake

_STATE = "matrix.json"
_MISSING = "uevt matrix needs dask.distributed"
_INSTALL = "install it: .venv/bin/pip install -e '.[scale]'"


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    about = "judge many kernels, on several machines"
    matrix = commands.add_parser("matrix", help=about, description=about)
    add = matrix.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="a kernel of the catalog, or model")
    about = "tls:// address of a scheduler of dask (default: workers on this machine)"
    add("--scheduler", metavar="ADDRESS", help=about)
    about = "workers on this machine (default: as cores and memory allow)"
    add("--workers", type=int, metavar="N", help=about)
    add("--shards", type=int, metavar="N", help="shards of a kernel (default: of about a minute)")
    add("-k", dest="keyword", metavar="EXPR", help="only cases with EXPR in their ids")
    add("--tier", choices=["quick", "full"], help="quick (the default) or full")
    add("--out", metavar="DIR", help="a directory, which gets one of each kernel")
    add("--resume", metavar="DIR", help="continue the matrix in DIR, which was ended")
    declare_security(matrix)
    matrix.set_defaults(perform=_matrix)


def require_distributed() -> None:
    """Raise UserMistake without dask.distributed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UserMistake(_MISSING, _INSTALL) from error


def _matrix(arguments: argparse.Namespace) -> int:
    """The exit code of the worst kernel.  Raises UserMistake, ReportError, HostTrouble, OSError."""
    silence()
    require_distributed()
    directory, state = _begin(arguments)
    kernels: list[str] = state["kernels"]
    errors: dict[str, str] = {}
    if left := [name for name in kernels if not (directory / name / NAME).is_file()]:
        try:
            errors = _judge(arguments, directory, {**state, "kernels": left})
        except KeyboardInterrupt:
            sys.stderr.write(f"uevt: to go on: uevt matrix --resume {directory}\n")
            raise
    return _conclude(directory, kernels, errors)


def _judge(arguments: argparse.Namespace, directory: Path, state: dict[str, Any]) -> dict[str, str]:
    """Judge kernels; the errors of those that were not."""
    from conformance.cli.matrix.controller import Matrix
    from conformance.cli.matrix.progress import Screen

    with connected(arguments, arguments.workers or guests_that_fit(None)) as client:
        matrix = Matrix(client, directory, **state)
        moving = is_terminal(sys.stdout, os.environ)
        screen = Screen(sys.stdout, matrix.columns, moving=moving)
        try:
            matrix.run(screen.show)
        except TimeoutError as error:
            raise HostTrouble(f"no worker: {error}", "start one: uevt worker ADDRESS") from error
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


def _begin(arguments: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """The directory and what to judge.  Raises UserMistake, ReportError."""
    if arguments.resume is not None:
        if arguments.out is not None or arguments.kernels or arguments.keyword or arguments.tier:
            raise UserMistake("--resume takes kernels and options from DIR", "leave out the others")
        directory = Path(arguments.resume).absolute()
        return directory, _known(directory / _STATE)
    if not arguments.kernels:
        raise UserMistake("no kernel named", "name some: uevt matrix 6.1 6.12 --out DIR")
    if arguments.out is None:
        raise UserMistake("no --out", "name a directory: --out results/matrix")
    for name in ("workers", "shards"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise UserMistake(f"--{name} needs a number", "give 1 or more")
    from conformance.results.directory import require_empty
    from kernels.request import Request

    for name in arguments.kernels:
        if name != "model":
            Request(name).entry()
    directory = Path(arguments.out).absolute()
    require_empty(directory)
    directory.mkdir(parents=True, exist_ok=True)
    words = [f"--tier={arguments.tier or 'quick'}", "--guests=1"]
    words += [f"-k={arguments.keyword}"] if arguments.keyword else []
    kernels = list(dict.fromkeys(arguments.kernels))
    state = {"kernels": kernels, "words": words, "shards": arguments.shards}
    write_atomically(directory / _STATE, json.dumps(state, indent=1) + "\n")
    return directory, state


def _known(file: Path) -> dict[str, Any]:
    """What an earlier controller wrote.  Raises ReportError."""
    if not file.is_file():
        raise ReportError(file.parent, "has no matrix to resume", "name the --out of uevt matrix")
    state = read_json(file)
    if not isinstance(state, dict) or state.keys() != {"kernels", "words", "shards"}:
        raise ReportError.malformed(file, "is not the state of a matrix")
    return state
