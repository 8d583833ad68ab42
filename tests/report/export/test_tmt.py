"""Custom results of tmt, by the rules of its schema (tmt/schemas/results.yaml and common.yaml)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from conformance.report.export.tmt import render_tmt
from conformance.results.case_result import Evidence
from conformance.results.outcome import Level, Outcome, SkipReason
from conformance.results.run import RunRecord
from tests.report.samples import UNHURRIED, case, contradicted, head, mixed, run, runs

OUTCOME = {"enum": ["pass", "fail", "info", "warn", "error", "skip", "pending"]}
TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA = Draft202012Validator(
    {
        "type": "array",
        # tmt itself takes an empty list for an error.
        "minItems": 1,
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "result"],
            "properties": {
                "name": {"type": "string", "pattern": "^/.*"},
                "result": OUTCOME,
                "original-result": OUTCOME,
                "note": TEXTS,
                "log": TEXTS,
                "duration": {"type": "string", "pattern": "^[0-9]{2,}:[0-5][0-9]:[0-5][0-9]$"},
            },
        },
    }
)


def document(*records: RunRecord, files: str = "") -> list[Any]:
    text = render_tmt(records, files)
    # YAML forbids control characters, even in a quoted text.
    assert text.isascii()
    found: list[Any] = json.loads(text)
    SCHEMA.validate(found)
    assert len({each["name"] for each in found}) == len(found)
    return found


def results(*records: RunRecord) -> dict[str, str]:
    return {each["name"]: each["result"] for each in document(*records)}


@UNHURRIED
@given(st.lists(runs(), min_size=1, max_size=2))
def test_any_runs_are_valid(records: list[RunRecord]) -> None:
    found = document(*records, files="uevt")
    assert len(found) == sum(len(each.cases) + 1 for each in records)
    for each in found:
        assert not any("\n" in note for note in each.get("note", ()))


def test_the_line_of_the_run_makes_a_deviation_fail() -> None:
    odd = case("write.a", Outcome.NOTE, level=Level.DETAIL)
    assert results(run(odd))["/write.a"] == "info"
    assert results(run(odd, head=head(fail_on=Level.DETAIL)))["/write.a"] == "fail"


def test_a_known_bug_was_a_failure() -> None:
    (known,) = [each for each in document(mixed()) if each["name"] == "/format.array_length"]
    assert known["original-result"] == "fail"
    assert known["note"][0].startswith("known bug format-array-length")


@pytest.mark.parametrize(
    ("record", "result", "note"),
    [
        (run(not_built=True), "skip", SkipReason.NOT_BUILT.sentence),
        (run(case("write.a"), selected=3, note="interrupted"), "error", "1 of 3 cases ended"),
        (run(selected=0), "error", "no case was judged"),
        (contradicted(), "fail", "FAIL"),
    ],
    ids=["not_built", "cut off", "empty", "contradicted"],
)
def test_the_test_itself_is_the_run(record: RunRecord, result: str, note: str) -> None:
    whole = document(record)[0]
    assert (whole["name"], whole["result"]) == ("/", result)
    assert any(note in each for each in whole["note"])


def test_several_kernels_have_names_of_their_own() -> None:
    found = results(run(case("write.a")), run(case("write.a", Outcome.FAIL)))
    assert found == {
        **{"/6.12": "pass", "/6.12/write.a": "pass"},
        **{"/6.12-2": "fail", "/6.12-2/write.a": "fail"},
    }


def test_logs_are_below_the_given_directory() -> None:
    whole, *cases = document(mixed(), files="uevt")
    assert whole["log"][0] == "uevt/results.ktap"
    assert {each["name"] for each in cases if "log" in each} == {
        each["name"] for each in cases if each["result"] in {"fail", "error"}
    }
    assert not any("log" in each for each in document(mixed()))


@pytest.mark.parametrize("text", ["\x00\x1b[31m\x85", "\ud800\ufffe", "x" * 100_000, "- a: !!x\n"])
def test_kernel_output_stays_text(text: str) -> None:
    odd = case("write.a", Outcome.CRASH, reason=text, evidence=Evidence(console=text))
    note = document(run(odd))[1]["note"]
    assert note[0].startswith("CRASH: ")
    assert note[1] == "rerun: uevt run --kernel 6.12 -k write.a"
