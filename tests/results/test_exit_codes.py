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

COLUMNS = (
    *("pass", "unexpected", "not_built", "host", "usage", "build_failed", "interrupted"),
    *("skipped", "not_applicable"),
)
CONTRACT = {
    "default": (0, 1, 3, 3, 2, 3, 130, 3, 2),
    "kselftest": (0, 1, 4, 1, 1, 1, 130, 1, 4),
    "autopkgtest": (0, 1, 77, 1, 1, 1, 130, 1, 77),
    "bisect": (0, 1, 125, 129, 129, 125, 130, 129, 129),
    "ltp": (0, 1, 32, 2, 2, 2, 130, 32, 32),
}


def test_exit_codes_of_every_style_and_ending() -> None:
    assert set(Ending) == set(COLUMNS)
    for style in ExitStyle:
        assert tuple(exit_code(Ending(column), style) for column in COLUMNS) == CONTRACT[style]


def test_not_built_depends_on_the_origin_of_the_kernel() -> None:
    assert exit_code(Ending.NOT_BUILT, origin=KernelOrigin.CATALOG) == 3
    assert exit_code(Ending.NOT_BUILT, origin=KernelOrigin.USER) == 0


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
