"""Write the files that derive from the record of a run."""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.report.export.junit import write_junit
from conformance.report.export.ktap import write_ktap
from conformance.repro.errors import NotExpressible
from conformance.repro.of_result import program_of_result
from conformance.results import results_json
from conformance.results.directory import JUNIT, KTAP, REPORT, REPRODUCERS
from conformance.results.run import RunRecord
from host.files import write_atomically

_MOST_REPRODUCERS = 100


def write_record_files(record: RunRecord, directory: Path) -> None:
    """Write results.json, JUnit, KTAP and reproducers.  Raises OSError, but not for the last."""
    results_json.write_results(record, directory / results_json.NAME)
    write_junit(record, directory / JUNIT)
    write_ktap(record, directory / KTAP)
    try:
        write_reproducers(record, directory)
    except OSError as error:
        # They are part of no verdict, and uevt repro writes them from results.json.
        sys.stderr.write(f"uevt: no {REPRODUCERS}/*.c: {error}\n")


def write_reproducers(record: RunRecord, directory: Path) -> list[Path]:
    """``repro/CASE.c`` of results that deviate, of the first hundred.  Raises OSError."""
    written: list[Path] = []
    for case in record.cases:
        if not case.unexpected or len(written) == _MOST_REPRODUCERS:
            continue
        try:
            text = program_of_result(case, record.head)
        except NotExpressible:
            # `uevt repro RUN -k CASE` gives the reason.
            continue
        path = directory / REPRODUCERS / f"{case.id}.c"
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, text)
        written.append(path)
    return written


def write_page(record: RunRecord, directory: Path) -> None:
    """Write report.html, with the coverage in the directory.  Raises OSError, ImportError."""
    # Imported late: workers do not need it.
    from conformance.report.matrix.findings import read_findings
    from conformance.report.matrix.html import render_html
    from conformance.report.matrix.table import matrix
    from conformance.results.stored_runs import Run, read_covered

    run = Run(record, covered=read_covered(directory))
    write_atomically(directory / REPORT, render_html(matrix([run]), read_findings()))
