"""Hostile texts of kernels, results and file names, in every plain-text form.

HTML and Markdown have tests of their own.
"""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.report.compare.compare import compare
from conformance.report.compare.text import render_page
from conformance.report.export.junit import render_junit
from conformance.report.export.ktap import render_ktap
from conformance.report.export.ktap_stream import KtapRuns, KtapStream
from conformance.report.terminal.progress import Live
from conformance.report.terminal.summary import render_summary
from conformance.results.case_result import Evidence
from conformance.results.outcome import Outcome
from conformance.results.run import KernelFacts, RunRecord
from tests.report.export import test_kcidb, test_tmt
from tests.report.export.ktap_reader import read_ktap
from tests.report.export.test_junit import SCHEMA
from tests.report.samples import case, contradictions, head, results, run, tuples

# Do not shrink: it takes longest, and each token is simple.
QUICK = settings(
    deadline=None,
    max_examples=30,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TOKENS = (
    *("\x1b[2J", "\x1b]8;;http://evil\x07click\x1b]8;;\x07", "\x1b]0;title\x07", "\x9b31m", "\x07"),
    # Bidirectional and invisible characters, and unusual line breaks.
    *("\u202e", "\u2066", "\u200b", "\ufeff", "\u2028"),
    *("\x85", "\x0b", "\x0c", "\r", "\x08", "\x00"),
    *("\nok 1 write.forged", "\nnot ok 2 x", "\n1..0 # SKIP", "\nBail out! no", "\n# Subtest: x"),
    *(" # SKIP", " # TODO", "KTAP version 1", "\n\nuevt: 6.12 PASS: 9 passed"),
    *("]]>", "<![CDATA[", "<!--", "&#27;", "<x>", "'\""),
    *("\ud800", "\uffff", "\U000e0041", "%s%n", "plain"),
)
HOSTILE = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=4).map("".join)
JUDGED = [each for each in Outcome if each is not Outcome.SKIP]
RECORDS = st.builds(
    RunRecord,
    head=st.builds(
        head,
        kernel=st.builds(KernelFacts, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        host=st.fixed_dictionaries({"accel": HOSTILE, "kvm": HOSTILE, "guests": HOSTILE}),
        started=HOSTILE,
        suite=HOSTILE,
    ),
    cases=st.tuples(results(HOSTILE, st.just("write.a"), JUDGED)),
    selected=st.integers(1, 2),
    duration_s=st.just(1.0),
    note=HOSTILE,
    contradictions=tuples(contradictions(HOSTILE), 1),
)


def check(text: str) -> None:
    """Only printable characters and newlines, without reordering."""
    odd = {each for each in text if each != "\n" and not each.isprintable()}
    assert not odd, f"{odd!r} in {text!r}"
    assert not any(unicodedata.bidirectional(each) in ("RLO", "RLI", "LRI") for each in text)


@QUICK
@given(RECORDS)
def test_hostile_texts_do_not_reach_the_terminal(record: RunRecord) -> None:
    check(render_summary(record, directory=Path("results/\x1b[2J")))
    # The verdict is the last line, and the only one of its form.
    lines = render_summary(record).splitlines()
    assert [line.startswith("uevt: ") for line in lines].count(True) == 1
    for quiet in (False, True):
        stream = io.StringIO()
        live = Live(stream, record.head, Path("\x1b[2J"), quiet=quiet)
        live.begin(1)
        live.case(record.cases[0])
        live.remark(record.cases[0])
        live.end(record)
        check(stream.getvalue())


def test_the_progress_line_is_one_line() -> None:
    stream = io.StringIO()
    kernel = KernelFacts("6.12\x1b[2J\nPASS", "6.12", "6.12")
    live = Live(stream, head(kernel=kernel), Path("out"), moving=True)
    live.begin(1)
    live.case(case("write.a"))
    check(stream.getvalue().replace("\r\x1b[K", ""))
    assert "\n" not in stream.getvalue()


@QUICK
@given(RECORDS)
def test_ktap_has_one_case_with_its_result(record: RunRecord) -> None:
    bad = record.head.fails(record.cases[0].outcome)
    check(render_ktap([record]))
    found = [each for each in read_ktap(render_ktap([record])).leaves() if each.name == "write.a"]
    assert [each.ok for each in found] == [not bad]
    stream = io.StringIO()
    shown = KtapStream(stream, record.head)
    shown.begin(record.selected)
    shown.case(record.cases[0])
    shown.remark(record.cases[0])
    shown.end(record)
    check(stream.getvalue())
    results = [line for line in stream.getvalue().splitlines() if line.startswith(("ok", "not ok"))]
    assert len(results) == 2
    assert results[0].startswith("not ok 1 write.a" if bad else "ok 1 write.a")
    runs = io.StringIO()
    KtapRuns(runs, 1).run(record.head.kernel.id, io.StringIO(stream.getvalue()))
    check(runs.getvalue())
    assert runs.getvalue().count("\nok ") + runs.getvalue().count("\nnot ok ") == 1


@QUICK
@given(RECORDS)
def test_documents_are_valid_and_have_one_case(record: RunRecord) -> None:
    text = render_junit([record, record])
    check(text)
    SCHEMA.validate(text)
    entries = ElementTree.fromstring(text).findall("testsuite/testcase")
    assert [each.get("name") for each in entries] == ["write.a", "uevt.run"] * 2
    dated = replace(record, head=replace(record.head, started=head().started))
    tests = test_kcidb.document(dated)["tests"]
    assert [each["path"] for each in tests] == ["user_events", "user_events.write.a"]
    assert [each["name"] for each in test_tmt.document(record)] == ["/", "/write.a"]


@QUICK
@given(RECORDS)
def test_a_comparison_is_printable(record: RunRecord) -> None:
    base = run(case("write.a"))
    check(render_page(compare(base, record)))
    check(render_page(compare(record, replace(record, cases=(case("write.b"),)))))


@pytest.mark.parametrize("token", TOKENS)
def test_each_token_is_escaped(token: str) -> None:
    """A failing kernel with the token: each form must escape or separate it."""
    record = run(case("write.a", Outcome.FAIL, reason=token, evidence=Evidence(console=token)))
    check(render_summary(record))
    check(render_ktap([record]))
