"""The documented exit codes, written out."""

from __future__ import annotations

import pytest

from conformance.results.exit_codes import (
    Ending,
    ExitStyle,
    KernelOrigin,
    ending_of,
    exit_code,
    worst,
)
from conformance.results.outcome import RunVerdict


@pytest.mark.parametrize("origin", list(KernelOrigin))
@pytest.mark.parametrize("style", list(ExitStyle))
def test_require_makes_not_built_unexpected(style: ExitStyle, origin: KernelOrigin) -> None:
    assert exit_code(Ending.NOT_BUILT, style, origin=origin, require=True) == 1
    assert exit_code(Ending.PASS, style, origin=origin, require=True) == 0


@pytest.mark.parametrize(
    ("verdict", "ending", "skipped"),
    [
        ("PASS", "pass", "pass"),
        ("FAIL", "unexpected", "unexpected"),
        ("NOT_BUILT", "not_built", "not_built"),
        ("ERROR", "host", "skipped"),
    ],
)
def test_each_verdict_has_an_ending(verdict: str, ending: str, skipped: str) -> None:
    assert ending_of(RunVerdict(verdict)) == Ending(ending)
    assert ending_of(RunVerdict(verdict), all_skipped=True) == Ending(skipped)


def test_the_worst_ending_decides() -> None:
    endings = [Ending.PASS, Ending.UNEXPECTED, Ending.HOST, Ending.USAGE]
    assert worst(endings) is Ending.USAGE
    assert worst(endings[:3]) is Ending.HOST
    assert worst(endings[:2]) is Ending.UNEXPECTED
    assert worst([Ending.SKIPPED, Ending.UNEXPECTED]) is Ending.UNEXPECTED
