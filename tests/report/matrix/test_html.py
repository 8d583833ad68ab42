"""The HTML report without a browser: its contents and its escaping."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.report.html.pages import TEMPLATES
from conformance.report.matrix.findings import Finding
from conformance.report.matrix.html import render_html
from conformance.report.matrix.story import other_results
from conformance.report.matrix.table import matrix
from conformance.results.case_result import CaseResult, Evidence, Mismatch
from conformance.results.outcome import Outcome
from conformance.results.run import RunRecord
from conformance.results.stored_runs import Covered, Run
from tests.report.samples import (
    UNHURRIED,
    case,
    contradicted,
    evidence,
    failure,
    head,
    kernel,
    mixed,
    run,
    runs,
)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\x00\u2028"
FINDING = Finding("A `thing`", "Case `a.b`: <b>bold</b>, [x](javascript:alert(1))", {"a.b"})  # type: ignore[arg-type]


def page(*records: RunRecord, findings: tuple[Finding, ...] = ()) -> str:
    return render_html(matrix([Run(record) for record in records]), findings)


def data(text: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    value: dict[str, Any] = json.loads(found[1])
    return value


class Elements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def hostile() -> RunRecord:
    """A run whose every text tries to inject markup."""
    result = replace(
        failure(),
        reason=HOSTILE,
        sentence=HOSTILE,
        mismatches=(Mismatch(1, HOSTILE, HOSTILE, f"{HOSTILE}\n{HOSTILE}"),),
        evidence=evidence(HOSTILE),
        adapted=(HOSTILE,),
    )
    facts = {"id": HOSTILE, "release": HOSTILE, "profile": HOSTILE, "source": HOSTILE}
    host = {"accel": HOSTILE, HOSTILE: HOSTILE}
    record = kernel("6.12", result, facts=facts, note=HOSTILE)
    return replace(record, head=replace(record.head, host=host, suite=HOSTILE, started=HOSTILE))


def test_hostile_texts_add_no_element() -> None:
    plain, found = (Elements(page(each)).found for each in (kernel("6.12", failure()), hostile()))
    names = {"script", "style", "img", "iframe", "a", "form", "link"}
    assert {tag for tag, _ in found} <= {tag for tag, _ in plain}
    assert sum(tag == "script" for tag, _ in found) == 2
    for tag, attributes in found:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        if tag in names and (href := attributes.get("href")):
            assert href.startswith("#") or href == "data:,"


def test_hostile_texts_are_not_changed() -> None:
    text = page(hostile())
    (detail,) = data(text)["details"]
    assert (detail["reason"], detail["console"], detail["adapted"]) == (HOSTILE, HOSTILE, [HOSTILE])
    assert data(text)["columns"] == [
        {"label": HOSTILE, "release": HOSTILE, "command": "uevt run --kernel 6.12"}
    ]


@settings(UNHURRIED, max_examples=15)
@given(st.lists(runs(), min_size=1, max_size=3))
def test_any_run_has_a_page(records: list[RunRecord]) -> None:
    text = page(*records)
    assert sum(tag == "script" for tag, _ in Elements(text).found) == 2
    shown = data(text)
    assert [len(row[4]) for row in shown["rows"]] == [len(records)] * len(shown["rows"])


def test_the_csp_allows_only_the_inlined_texts() -> None:
    text = page(mixed())
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert found
    policy = dict(part.split(" ", 1) for part in unescape(found[1]).split("; "))
    assert policy["default-src"] == "'none'"
    for tag, source in (("style", "style-src"), ("script", "script-src")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert content
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert policy[source] == f"'sha256-{digest}'"
    assert " style=" not in text
    # The text of a failure names pages; nothing refers to one.
    without_failures = re.sub(r'<pre class="failure">.*?</pre>', "", text, flags=re.DOTALL)
    assert "://" not in without_failures


@pytest.mark.parametrize("file", sorted(TEMPLATES.glob("*.[cj]s*")), ids=lambda file: file.name)
def test_styles_and_scripts_do_not_end_their_elements(file: Any) -> None:
    assert not re.search(r"</(style|script)|<!--", file.read_text(encoding="utf-8"), re.IGNORECASE)


def test_findings_of_cases_are_quoted() -> None:
    text = page(run(case("a.b"), case("a.c")), findings=(FINDING, Finding("Other", "Case `z.z`.")))
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert 'href="javascript' not in text
    assert "A <code>thing</code>" in text
    assert "<summary>Other" not in text
    assert [data(text)["functions"][row[1]][3] for row in data(text)["rows"]] == [[0], []]


def test_shared_evidence_is_stored_once() -> None:
    long = Evidence(tuple(f"{n}. open()" for n in range(100)), console="text")
    failed = case("a.b", Outcome.FAIL, reason="it broke", evidence=long)
    shown = data(page(*(kernel(f"6.{n}", failed) for n in range(1, 9))))
    assert (len(shown["details"]), len(shown["lines"])) == (1, 112)
    assert shown["rows"][0][7] == {str(place): 0 for place in range(8)}


def test_passing_cases_are_small() -> None:
    cases = [case(f"write.case_{n}", duration_s=0.01, digest=f"{n:064x}") for n in range(500)]
    few, many = (len(page(*[kernel(f"6.{n}", *cases) for n in range(1, k)])) for k in (3, 11))
    assert (many - few) / (8 * 500) < 10  # bytes of a cell


def test_the_page_has_all_sections() -> None:
    text = page(mixed(), contradicted())
    sections = [title for title, _, _ in other_results(matrix([Run(mixed())]))]
    assert "Known bugs" in sections
    for title in ("Failed", *sections, "Contradicted switches", "What changed"):
        assert f"<h2>{title}</h2>" in text
    covered = Covered("kernel/trace/trace_events_user.c", 950, 95.2, 600, 81.0)
    with_coverage = render_html(matrix([Run(mixed(), covered=(covered,))]), ())
    assert "6.12 covered kernel/trace/trace_events_user.c: 95.2 % of 950 lines" in with_coverage


def test_a_self_check_has_no_verdict() -> None:
    text = page(run(case("a.b"), head=head(self_check=True)))
    assert "self-check ok" in text
    assert ">PASS<" not in text


def test_a_run_without_cases_has_a_page() -> None:
    assert data(page(kernel("6.1", not_built=True)))["rows"] == []


def test_durations_and_digests_are_kept() -> None:
    def result(digest: str, seconds: float) -> CaseResult:
        return case("a.b", digest=digest * 32, duration_s=seconds)

    alike = kernel("6.1", result("ab", 0.5)), kernel("6.4"), kernel("6.12", result("ab", 2))
    one = data(page(*alike))
    assert one["rows"][0][4:7] == ["P-P", [500, 2000], "abababababab"]
    other = data(page(kernel("6.1", result("ab", 0.5)), kernel("6.12", result("cd", 2))))
    assert other["rows"][0][6] == ["abababababab", "cdcdcdcdcdcd"]
