"""Finding expectations that are not needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.cli import expectations as command
from conformance.cli import main
from conformance.expectations import loader
from conformance.expectations.loader import Expectations
from conformance.report.known_deviations import stale
from conformance.results.case_result import Blame, CaseResult, Mismatch, Outcome
from conformance.results.run import RunRecord
from tests.report.samples import case, kernel, stored

XF, XP = Outcome.XFAIL, Outcome.FIXED
C, T, E = Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR

# A case of the suite.
CASE = "registration.same_index_again"

FILE = f"""\
[[expectation]]
case = "{CASE}"
step = 2
field = "errno"
pattern = "ENOENT"
when = "release >= 5.18"
reason = "the event is looked up too early"

[[expectation]]
case = "header.size.0"
step = "any"
field = "value"
pattern = '\\d+'
when = "switch == multi_format"
reason = "sizes differ"
"""
KNOWN = {CASE, "header.size", "header.size.0"}


def deviating(
    case_id: str = CASE,
    observed: str = "ENOENT",
    step: int = 2,
    field: str = "errno",
    **others: Any,
) -> CaseResult:
    """A case that deviates at one step."""
    mismatch = Mismatch(step, field, "EINVAL", observed)
    given = {"outcome": Outcome.FAIL, "reason": str(mismatch), "mismatches": (mismatch,), **others}
    return case(case_id, **given)


def expectations(*words: str) -> int:
    return main.main(["expectations", *words])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file of expectations."""
    directory = tmp_path / "expectations"
    directory.mkdir()
    monkeypatch.setattr(loader, "DIRECTORY", directory)
    monkeypatch.setattr(command, "_case_ids", lambda: KNOWN)
    (directory / "user_events.toml").write_text(FILE)
    return directory / "user_events.toml"


def found(record: RunRecord, *, every: bool = False) -> list[tuple[str, str]]:
    """The unneeded expectations and why."""
    findings = stale(record, Expectations.load(loader.DIRECTORY), every=every)
    return [(each.entry.case, each.problem.value) for each in findings]


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (deviating(outcome=XF), None),
        (case(CASE, XP), "gone"),
        (deviating(observed="EPERM"), "otherwise"),
        (deviating(step=3), "otherwise"),
        (deviating(field="value"), "otherwise"),
        (deviating(outcome=XF, observed="EPERM"), "otherwise"),
        # No evidence about the deviation.
        (case(CASE, C), None), (case(CASE, T), None), (case(CASE, E), None),
        (case(CASE, Outcome.SKIP), None), (deviating(blame=Blame.MODEL, observed="EPERM"), None),
    ],
)  # fmt: skip
def test_a_run_confirms_or_refutes_an_expectation(result: CaseResult, problem: str | None) -> None:
    assert found(kernel("6.12.117", result)) == ([(CASE, problem)] if problem else [])
    elsewhere = kernel("next-20261120", result, facts={"profile": "6.12"})
    assert found(elsewhere) == []


@pytest.mark.usefixtures("file")
def test_a_case_that_did_not_run_is_a_finding_of_full_runs() -> None:
    quick = kernel("6.12.117", deviating(outcome=XF))
    assert found(quick) == []
    assert found(quick, every=True) == [("header.size.0", "not_run")]
    assert found(kernel("6.1.192", deviating(outcome=XF)), every=True) == []
    self_check = replace(quick, head=replace(quick.head, self_check=True))
    assert found(self_check, every=True) == []


@pytest.mark.usefixtures("file")
def test_measured_switches_decide_whether_an_expectation_applies() -> None:
    shown = deviating("header.size.0", observed="x", field="value")
    assert found(kernel("6.12.117", shown)) == [("header.size.0", "otherwise")]
    assert found(kernel("6.12.117", replace(shown, adapted=("multi_format",)))) == []


def test_check_finds_nothing_in_the_expectations_of_the_suite(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert expectations("check") == 0
    assert capsys.readouterr().out == "uevt: 4 expectations checked, 0 not needed\n"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (f'"{CASE}"', '"registration.none_such"', "there is no such case"),
        ('"release >= 5.18"', '"release >= 5.18 and release < 5.18"', "matches no kernel"),
        ('"release >= 5.18"', '"release == 6.1.5 and switch == persist"', "matches no kernel"),
        ('"release >= 5.18"', '"release == 6.12.400"', None),
        ('"release >= 5.18"', '"flavour == debug"', None),
        ('"release >= 5.18"', '"flavour == no_such"', "matches no kernel"),
        (
            'reason = "sizes differ"',
            'reason = "x"\nfixed_by = "tracing/user_events: Fix non-spaced field matching"',
            "write when = switch == multi_format and switch != unspaced_fields_match",
        ),
        ('reason = "sizes differ"', 'reason = "x"\nfixed_by = "an unknown title"', None),
    ],
)
def test_check_finds_what_no_run_can_need(
    old: str, new: str, problem: str | None, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in FILE
    file.write_text(FILE.replace(old, new, 1))
    assert expectations("check") == (1 if problem else 0)
    printed = " ".join(capsys.readouterr().out.split())
    assert problem is None or problem in printed


@pytest.mark.usefixtures("file")
def test_check_against_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = stored(tmp_path / "good", kernel("6.1.192", deviating(outcome=XF)))
    bad = stored(tmp_path / "bad", kernel("6.12.117", case(CASE, XP)))
    assert expectations("check", str(good)) == 0
    capsys.readouterr()
    assert expectations("check", str(good), str(bad)) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"user_events.toml, expectation 1: {CASE}",
        "  its case ran and did not deviate: 6.12.117 (6.12.117)",
        "uevt: 2 expectations checked against 2 runs, 1 not needed",
    ]
    assert expectations("check", str(tmp_path / "none")) == 2
