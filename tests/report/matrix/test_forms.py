"""The report as Markdown and text."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.report.matrix.findings import Finding
from conformance.report.matrix.markdown import render_markdown
from conformance.report.matrix.table import Matrix, matrix
from conformance.report.matrix.text import render_text
from conformance.results.outcome import Outcome
from conformance.results.run import RunRecord
from conformance.results.stored_runs import Covered, Run
from host.text import WIDTH
from tests.report.matrix.test_html import hostile
from tests.report.samples import UNHURRIED, case, contradicted, kernel, many_causes, mixed, runs

REASON = "format prints an uninitialised array length: user_event_add_field never sets a member"
FINDING = Finding("`format` prints a length", "", frozenset({"format.array_length"}))
COVERED = Covered("kernel/trace/trace_events_user.c", 950, 95.2, 600, 81.0)


def example() -> Matrix:
    """Three kernels: one passes, one deviates, one fails."""

    def cases(outcome: Outcome, reason: str = "") -> RunRecord:
        release = {Outcome.PASS: "6.1.10", Outcome.XFAIL: "6.12.117", Outcome.FAIL: "7.3.4"}[
            outcome
        ]
        sentence = "An array shows its length behind its name."
        shown = case("format.array_length", outcome, reason=reason, sentence=sentence)
        other = [case(f"write.size.{n}", duration_s=0.1, sentence="A size.") for n in range(3)]
        if outcome is Outcome.FAIL:
            other = [replace(each, outcome=Outcome.FAIL, reason="no answer") for each in other]
        return kernel(release, shown, *other)

    found = [Run(cases(Outcome.PASS)), Run(cases(Outcome.XFAIL, REASON), covered=(COVERED,))]
    return matrix([*found, Run(cases(Outcome.FAIL, "another length"))])


def test_the_text_form(golden: Callable[[str, str], None]) -> None:
    golden("matrix.txt", render_text(example()))


def test_the_markdown_form(golden: Callable[[str, str], None]) -> None:
    golden("matrix.md", render_markdown(example(), [FINDING]))


@UNHURRIED
@given(st.lists(runs(), max_size=3))
def test_text_fits_100_columns_without_escape_sequences(records: list[RunRecord]) -> None:
    text = render_text(matrix(map(Run, records)))
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert text.replace("\n", "").isprintable()


def test_colour_is_optional() -> None:
    records = [Run(mixed()), Run(contradicted())]
    assert "\x1b" not in render_text(matrix(records))
    assert "\x1b[31mFAIL" in render_text(matrix(records), colour=True)


def test_text_is_not_markup() -> None:
    text = render_markdown(matrix([Run(hostile()), Run(mixed())]))
    assert not re.search(r"(?<!\\)<(?!br>|/?details>|/?summary>)", text)
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_texts_neither_mention_nor_link() -> None:
    reason = "ask @somebody in #12 or see https://example.org/ *now*"
    text = render_markdown(matrix([Run(kernel("6.12", case("a.b", Outcome.FAIL, reason=reason)))]))
    assert not re.search(r"@\w|#\d|://", text)
    assert r"\*now\*" in text


def test_the_earlier_kernel_is_named_if_the_previous_one_did_not_run_the_case() -> None:
    records = kernel("6.1", case("a.b")), kernel("6.4"), kernel("6.12", case("a.b", Outcome.FAIL))
    found = matrix(map(Run, records))
    assert "\n  PASS -> FAIL a.b (PASS on 6.1)\n" in render_text(found)
    assert "\n- **PASS → FAIL** `a.b` (PASS on 6.1)\n" in render_markdown(found)


def test_long_sections_are_cut() -> None:
    found = matrix([Run(kernel("6.12", *many_causes()))])
    for text in (render_text(found), render_markdown(found)):
        assert "and 646 more" in text
        assert len(text.splitlines()) < 120
