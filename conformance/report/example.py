"""The example in docs/example: a run on a seeded bug in every form, and a report on some kernels.

``python -m conformance.report.example`` writes them from the results.json of the runs, which are
kept there; with RUN arguments it keeps those runs first.  A test compares: no form gets stale.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from conformance.cases.discovery import all_cases
from conformance.report.export.junit import render_junit
from conformance.report.export.ktap import render_ktap
from conformance.report.matrix.findings import read_findings
from conformance.report.matrix.html import render_html
from conformance.report.matrix.table import matrix
from conformance.report.terminal.progress import Live
from conformance.results.directory import JUNIT, KTAP, REPORT
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord
from conformance.results.stored_runs import Run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example"
SEEDED = "6.12+fork_copies_one"
"""The run that is shown in every form, by its kernel."""
OUTPUT = "output.txt"


def keep(run: Path) -> None:
    """Copy a run, without the path of the checkout and without the kernel of the host."""
    record = read_results(run / NAME)
    host = {name: value for name, value in record.head.host.items() if name != "kernel"}
    asked = tuple(word.replace(f"{ROOT}/", "") for word in record.head.asked)
    record = replace(record, head=replace(record.head, host=host, asked=asked))
    directory = EXAMPLE / record.head.kernel.id
    directory.mkdir(exist_ok=True)
    (directory / NAME).write_text(_document(record), encoding="utf-8")


def forms() -> Iterator[tuple[Path, str]]:
    """Every file of the example with its text.  Raises ReportError."""
    runs = []
    for file in sorted(EXAMPLE.glob(f"*/{NAME}")):
        place = file.parent.relative_to(ROOT)
        runs.append(Run(read_results(file), str(place)))
        # Keys that were added since then have their defaults.
        yield file, _document(runs[-1].record)
    findings = read_findings()
    cases = {case.id: case for case in all_cases()}
    yield EXAMPLE / REPORT, render_html(matrix(runs, cases), findings)
    (seeded,) = [run for run in runs if run.record.head.kernel.id == SEEDED]
    directory = EXAMPLE / SEEDED
    yield directory / JUNIT, render_junit([seeded.record])
    yield directory / KTAP, render_ktap([seeded.record])
    yield directory / REPORT, render_html(matrix([seeded]), findings)
    yield directory / OUTPUT, _output(seeded)


def _document(record: RunRecord) -> str:
    return json.dumps(record.to_json(), indent=1) + "\n"


def _output(run: Run) -> str:
    """What `uevt run` prints to a pipe."""
    stream, record = io.StringIO(), run.record
    live = Live(stream, record.head, Path(run.place))
    live.begin(record.selected)
    for case in record.cases:
        live.case(case)
    live.end(record)
    return stream.getvalue()


def main(arguments: Sequence[str]) -> None:
    """Keep these runs, and write every form."""
    for run in arguments:
        keep(Path(run))
    for file, text in forms():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
