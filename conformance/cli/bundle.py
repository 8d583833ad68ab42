"""`uevt bundle`: a failure in one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from conformance.cli.output import write
from conformance.cli.repro import chosen
from conformance.repro.errors import NotExpressible
from conformance.repro.of_result import only_literal, program_of_result
from conformance.results.bundle import VERSION, Bundle
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.results_json import read_results
from conformance.results.stored_runs import find_run
from kernels.errors import UserMistake


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="a directory of results")
    add("-k", dest="case", default="", metavar="CASE", help="the case, by its id")
    add("--out", type=Path, required=True, metavar="FILE", help="the file to write")
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    """Raises UserMistake, ReportError."""
    record = read_results(find_run(arguments.run))
    result = chosen(record.cases, arguments.case, str(arguments.run))
    if why := only_literal(result):
        raise UserMistake(f"{result.id}: {why}")
    try:
        source = program_of_result(result, record.head)
    except NotExpressible:
        source = ""
    try:
        bundle = Bundle(VERSION, record.head, result, source)
    except ValueError as error:
        why = result.evidence.left_out or "only deviations and known bugs are recorded"
        raise UserMistake(f"{error}: {why}", "name a case that deviates with -k") from error
    write(bundle.text, arguments.out)
    return exit_code(Ending.PASS)
