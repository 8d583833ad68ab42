"""The summaries in docs/results are of the programs that the cases are today."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.abi.profile import profile_for
from conformance.ops.digest import digest
from conformance.results.summary import Summary, brief
from tests.cases.variants import all_variants, honest

DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "results"
# Runs on kernels that were built by hand, from code that is not ours to ship.
BY_HAND = {"first-commit", "rfc-v1"}
KEPT = sorted(DIRECTORY.glob("*.json"))


def test_kernels_of_every_generation_are_kept() -> None:
    assert {"6.1", "6.1-byte-status", "6.1-two-pages", "6.12", "7.3"} <= {
        path.stem for path in KEPT
    }


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_summary_is_not_stale(path: Path) -> None:
    kept = Summary.read(path)
    profile = profile_for(kept.profile, base=kept.release)
    today = {
        variant.id: brief(digest(step.operation for step in run.lockstep.steps))
        for variant in all_variants()
        if variant.case.applies(profile)
        if (run := honest(variant, profile=profile))
    }
    judged = {id: shown for id, shown in kept.cases.items() if shown.outcome != "SKIP"}
    stale = {id for id, shown in judged.items() if today.get(id) != shown.digest}
    if path.stem in BY_HAND:
        assert stale == set(), "run it again, or take these lines out"
        return
    assert (stale, set(today) - set(kept.cases)) == (set(), set()), "run make matrix"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_run_went_as_expected(path: Path) -> None:
    kept = Summary.read(path)
    assert kept.verdict == "PASS"
    skipped = {id for id, shown in kept.cases.items() if shown.outcome == "SKIP"}
    # Of an image that nobody's catalog has: no helper module fits it.
    assert skipped == set() or path.stem in BY_HAND
    assert {id.partition(".")[0] for id in skipped} <= {"other"}
    assert {shown.outcome for shown in kept.cases.values()} <= {"PASS", "XFAIL", "SKIP"}
