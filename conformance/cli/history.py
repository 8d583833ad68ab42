"""`uevt history`: releases between which an outcome changed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from conformance.cli.output import print_json
from conformance.report.history.changes import SCHEMA, case_history, kernel_history
from conformance.report.history.store import Store
from conformance.report.history.text import render_case, render_kernel, render_variants
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.stored_outcomes import RunOutcomes
from host.text import one_line

STORE = Path(__file__).parents[2] / "results"
# Reading more runs than this takes a while.
_MANY = 50


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    about = "id of a case or of a function (all its variants), id of a kernel, or a release"
    parser.add_argument("subject", metavar="CASE|KERNEL", help=about)
    default = "directory of runs (default: results in the checkout)"
    parser.add_argument("--store", type=Path, metavar="DIR", default=STORE, help=default)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    """Raises ReportError for a subject that the store does not have."""
    subject: str = arguments.subject
    store = Store.read(arguments.store, _reading)
    for path, why in store.unreadable:
        sys.stderr.write(f"uevt: ignored: {one_line(f'{path}: {why}')}\n")
    runs = [run for run in store.runs if subject in (run.head.kernel.id, run.head.kernel.release)]
    if runs:
        _kernel(subject, runs, as_json=arguments.json)
    else:
        _cases(_named(store, arguments.store, subject), store.runs, as_json=arguments.json)
    return exit_code(Ending.PASS)


def _reading(number: int) -> None:
    if number > _MANY:
        sys.stderr.write(f"uevt: reading {number} runs\n")


def _kernel(name: str, runs: Sequence[RunOutcomes], *, as_json: bool) -> None:
    past = kernel_history(runs)
    if as_json:
        document = {"schema": SCHEMA, "kernel": name, "runs": [each.to_json() for each in past]}
        print_json(document)
    else:
        sys.stdout.write(render_kernel(name, past))


def _cases(cases: Sequence[str], runs: Sequence[RunOutcomes], *, as_json: bool) -> None:
    pasts = [case_history(case, runs) for case in cases]
    if as_json:
        documents = [past.to_json() for past in pasts]
        found = documents if len(documents) > 1 else documents[0]
        print_json(found)
    elif len(pasts) == 1:
        sys.stdout.write(render_case(pasts[0]))
    else:
        sys.stdout.write(render_variants(pasts))


def _named(store: Store, directory: Path, subject: str) -> list[str]:
    """The case with this id, or the variants of this function.  Raises ReportError."""
    cases = store.cases
    if subject in cases:
        return [subject]
    if variants := [case for case in cases if case.startswith(f"{subject}.")]:
        return variants
    close = get_close_matches(subject, [*store.kernels, *cases], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "name another --store DIR"
    what = f"has no run of a kernel or case named {one_line(subject)}"
    raise ReportError(directory, what, hint)
