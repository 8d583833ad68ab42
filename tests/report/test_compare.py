"""What is different between two runs, and how a maintainer is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance import cli
from conformance.outcome import (
    CaseResult,
    Contradiction,
    Mismatch,
    Outcome,
    SkipReason,
    settle,
)
from conformance.report.compare import REGRESSIONS, Kind, compare
from conformance.report.page import render_page
from conformance.report.record import KernelFacts, RunRecord
from conformance.report.results import NAME, write_results
from conformance.report.rundir import link_latest
from tests.report.samples import case, head, run

P, F, XF, XP = Outcome.PASS, Outcome.FAIL, Outcome.XFAIL, Outcome.XPASS
S, C, T, E = Outcome.SKIP, Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR
PATCHED = KernelFacts(
    id="6.12+fix",
    release="6.12.117",
    profile="6.12",
    config_sha256="5f0c" * 16,
    source="linux-source-6.12 6.12.117-1~deb12u1",
)
SWITCH = Contradiction("nonspaced_match", True, "spaces do not matter", "a title", "dated.spaces")


def wrong(case_id: str, observed: str = "0", outcome: Outcome = F, **others: Any) -> CaseResult:
    """A case that showed another errno."""
    mismatch = Mismatch(2, "errno", "EINVAL", observed)
    return case(case_id, outcome, reason=str(mismatch), mismatches=(mismatch,), **others)


def kind(base: Outcome | None, new: Outcome | None) -> Kind | None:
    """What a case with these outcomes, and nothing else that differs, is called."""
    runs = [run() if each is None else run(case("a.b", each)) for each in (base, new)]
    found = compare(*runs).changes
    return found[0].kind if found else None


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (P, P, None), (P, XF, Kind.OTHERWISE), (P, F, Kind.BROKEN), (P, C, Kind.BROKEN),
        (P, T, Kind.BROKEN), (P, S, Kind.UNDECIDED), (P, E, Kind.UNDECIDED),
        (P, XP, Kind.OTHERWISE),
        (XF, P, Kind.FIXED), (XF, XP, Kind.FIXED), (XF, F, Kind.BROKEN), (XF, XF, None),
        (XP, XF, Kind.OTHERWISE), (XP, F, Kind.BROKEN), (XP, P, Kind.OTHERWISE),
        (F, F, None), (F, P, Kind.FIXED), (F, XF, Kind.FIXED), (F, C, Kind.WORSE),
        (F, T, Kind.WORSE), (F, E, Kind.UNDECIDED), (F, S, Kind.UNDECIDED),
        (C, F, Kind.CHANGED), (C, T, Kind.CHANGED), (C, P, Kind.FIXED),
        (S, F, Kind.BROKEN), (E, F, Kind.BROKEN), (S, S, None), (S, E, Kind.OTHERWISE),
        (S, P, Kind.OTHERWISE), (E, P, Kind.OTHERWISE), (E, E, None),
        (None, P, Kind.APPEARED), (None, F, Kind.APPEARED), (P, None, Kind.VANISHED),
        (F, None, Kind.VANISHED),
    ],
)  # fmt: skip
def test_kinds(base: Outcome | None, new: Outcome | None, expected: Kind | None) -> None:
    assert kind(base, new) is expected


def test_only_what_the_base_run_shows_can_be_a_regression() -> None:
    for outcome in Outcome:
        for other in Outcome:
            comparison = compare(run(case("a.b", outcome)), run(case("a.b", other)))
            kinds = {change.kind for change in comparison.changes}
            assert comparison.regression is bool(kinds & REGRESSIONS)
    assert not compare(run(), run(case("a.b", F))).regression


def test_a_run_is_as_itself() -> None:
    same = run(case("a.a"), wrong("a.b"), case("a.c", S), case("a.d", XF), case("a.e", C))
    assert not compare(same, same).different
    assert compare(same, same).same == 5


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        ("0", "EPERM", True),
        ('name "t00091_e0"', 'name "t00007_e0"', False),
        ("at 0x200000000000", "at 0x7f0000000000", False),
        ("17", "18", True),
    ],
)
def test_failing_in_another_way(before: str, now: str, differs: bool) -> None:
    found = compare(run(wrong("a.b", before)), run(wrong("a.b", now))).changes
    assert [change.kind for change in found] == ([Kind.CHANGED] if differs else [])


def test_switches_contradicted_anew_are_a_regression() -> None:
    adapted = case("a.b", adapted=("nonspaced_match",))
    base, new = run(case("a.b")), run(adapted, contradictions=(SWITCH,))
    comparison = compare(base, new)
    assert comparison.contradicted == (SWITCH,)
    assert comparison.regression
    assert [change.kind for change in comparison.changes] == [Kind.OTHERWISE]
    back = compare(new, base)
    assert (back.kept, back.regression) == ((SWITCH,), False)


def test_a_kernel_that_lost_user_events() -> None:
    unbuilt = run(case("a.b", S, reason=SkipReason.NOT_BUILT), not_built=True)
    comparison = compare(run(case("a.b")), unbuilt)
    assert (comparison.unbuilt, comparison.regression, comparison.changes) == (True, True, ())
    assert "the new kernel has no user_events" in render_page(comparison)
    assert not compare(unbuilt, unbuilt).different


def everything() -> tuple[RunRecord, RunRecord]:
    """Two runs with one of each difference."""
    reason = "QEMU was ended by signal 9 (SIGKILL)"
    rerun = settle(case("write.hangs", T, reason="no answer in 10 s"), case("write.hangs"))
    known = "format prints an uninitialised array length"
    base = run(
        case("delete.busy"),
        wrong("enable.bit_63", "0"),
        wrong("enable.bit_64", "0"),
        wrong("grammar.empty", "EPERM"),
        case("format.array_length", XF, reason=known),
        case("header.size"),
        wrong("registration.size_short"),
        case("status.text"),
        *(case(f"trace.line_{n}") for n in range(3)),
        wrong("trace.wrong"),
        *(case(f"write.spaces_{n}") for n in range(4)),
        case("write.hangs"),
    )
    new = run(
        case("delete.busy", C, reason="Kernel panic - not syncing: Fatal exception"),
        wrong("enable.bit_63", "EFAULT"),
        case("enable.bit_64", C, reason="BUG: unable to handle page fault"),
        case("grammar.empty"),
        case("format.array_length", XP, reason=known),
        wrong("header.size", "E2BIG"),
        wrong("registration.size_short"),
        case("status.text", E, reason=reason),
        *(case(f"persist.line_{n}") for n in range(2)),
        wrong("persist.wrong"),
        *(case(f"write.spaces_{n}", adapted=("nonspaced_match",)) for n in range(4)),
        rerun,
        head=head(kernel=PATCHED, suite="0.2.0"),
        contradictions=(SWITCH,),
    )
    return base, new


def test_a_page_with_everything(golden: Callable[[str, str], None]) -> None:
    text = render_page(compare(*everything()))
    golden("compared.txt", text)
    assert max(map(len, text.splitlines())) <= 78


def test_a_page_without_a_difference() -> None:
    base = run(case("a.a"), case("a.b", XF))
    new = replace(base, head=head(kernel=PATCHED))
    last = render_page(compare(base, new)).splitlines()[-1]
    assert last == "uevt: 6.12+fix against 6.12: no difference in 2 cases"


def test_a_kernel_that_breaks_everything_is_one_page_still() -> None:
    base = run(*(case(f"write.case_{n:03}") for n in range(200)))
    new = run(*(wrong(f"write.case_{n:03}") for n in range(200)))
    lines = render_page(compare(base, new)).splitlines()
    assert len(lines) < 80
    assert "  and 170 more (--json has all)" in lines


def kept(directory: Path, record: RunRecord) -> Path:
    directory.mkdir(parents=True)
    write_results(record, directory / NAME)
    return directory


def compared(*arguments: object) -> int:
    return cli.main(["compare", *map(str, arguments)])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = kept(tmp_path / "6.12" / "20261120T174400Z", run(case("a.b"), case("a.c")))
    kept(tmp_path / "6.12" / "20261119T000000Z", run(case("a.b", F)))
    link_latest(good)
    bad = kept(tmp_path / "bad", run(wrong("a.b"), case("a.c")))
    assert compared(tmp_path / "6.12", bad) == 1
    assert "1 newly failing, 1 as before" in capsys.readouterr().out
    assert compared(bad / NAME, tmp_path / "6.12") == 0
    assert "1 fixed" in capsys.readouterr().out
    assert compared("--json", good, bad) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["regression"] is True
    assert data["same"] == 1
    (change,) = data["changes"]
    assert (change["case"], change["kind"], change["regression"]) == ("a.b", "broken", True)
    assert (change["base"]["outcome"], change["new"]["outcome"]) == ("PASS", "FAIL")
    assert change["new"]["mismatches"][0]["observed"] == "0"


def test_a_run_without_a_verdict_is_no_success(tmp_path: Path) -> None:
    good = kept(tmp_path / "good", run(case("a.b")))
    cut = kept(tmp_path / "cut", run(case("a.b"), selected=2))
    assert compared(good, cut) == 3


@pytest.mark.parametrize("what", ["nothing", "several", "self-check"])
def test_what_cannot_be_compared(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = kept(tmp_path / "good", run(case("a.b")))
    other = tmp_path / "other"
    if what == "several":
        kept(other / "1", run(case("a.b")))
        kept(other / "2", run(case("a.b")))
    elif what == "self-check":
        kept(other, run(case("a.b"), head=head(self_check=True)))
    assert compared(good, other) == 2
    assert capsys.readouterr().err.startswith(f"uevt: {other}")
