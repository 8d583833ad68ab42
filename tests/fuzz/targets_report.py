"""Parsers of earlier runs: journals, results, durations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from conformance.report.compare.compare import compare
from conformance.report.compare.text import render_page
from conformance.report.export.junit import render_junit
from conformance.report.export.ktap import render_ktap
from conformance.report.terminal.summary import render_summary
from conformance.results.errors import ReportError
from conformance.results.journal import CHECK, JournalWriter, sealed
from conformance.results.replay import read_head, read_journal
from conformance.results.results_json import read_results
from conformance.results.run import RunRecord
from conformance.session.ordering import Durations
from tests.fuzz.target import Target, on_file
from tests.report.samples import contradicted, head, mixed


def report_targets(scratch: Path) -> tuple[Target, ...]:
    """Parsers of result files."""
    return (
        Target("journal", _journal(scratch), lambda: _journals(scratch), (ReportError,)),
        Target("results", on_file(scratch / "results.json", _results), _documents, (ReportError,)),
        Target(
            "durations",
            on_file(scratch / "durations" / "6.12.json", _durations),
            lambda: [b'{"a.b": 0.25, "c.d": 1e3}'],
        ),
    )


def _journal(scratch: Path) -> Callable[[bytes], None]:
    path = scratch / "journal.jsonl"

    def read(data: bytes) -> None:
        path.write_bytes(_sealed(data))
        read_head(path)
        found = read_journal(path)
        assert found.torn == (bool(data) and not data.endswith(b"\n"))
        if found.head is not None:
            cases = tuple(found.results.values())
            shown(RunRecord(found.head, cases, len(cases), 1.0))

    return read


def _sealed(data: bytes) -> bytes:
    """The same with correct checksums, which an attacker can compute."""
    *lines, rest = data.split(b"\n")
    whole, check = b"", b""
    for line in lines:
        body = line.rpartition(CHECK)[0] or line.removesuffix(b"}")
        whole += (sealing := sealed(body + b"}", check))
        check = sealing.rpartition(CHECK)[2][:-3]
    return whole + rest


def _journals(scratch: Path) -> list[bytes]:
    path = scratch / "journal.seed"
    path.unlink(missing_ok=True)
    with JournalWriter(path, sync=False) as journal:
        journal.begin(head())
        journal.plan(len(mixed().cases))
        journal.running(mixed().cases[0].id, "quick")
        journal.attempt(mixed().cases[0])
        for case in mixed().cases:
            journal.case(case)
        journal.end()
    whole = path.read_bytes()
    return [whole, whole[:-20], b""]


def _results(file: Path) -> None:
    record = read_results(file)
    shown(record)
    render_page(compare(mixed(), record))
    render_page(compare(record, contradicted()))


def _documents() -> list[bytes]:
    return [json.dumps(each.to_json()).encode() for each in (mixed(), contradicted())]


def shown(record: RunRecord) -> None:
    """Render a record in every form."""
    for line in render_summary(record).split("\n"):
        assert line.isprintable(), line
    render_ktap([record]).encode("utf-8")
    render_junit([record]).encode("utf-8")


def _durations(file: Path) -> None:
    Durations(file.parents[1], "6.12").read()
