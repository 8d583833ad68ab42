"""What is different between two runs, and how a maintainer is told."""

from __future__ import annotations

import gzip
import hashlib
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
    Evidence,
    Mismatch,
    Outcome,
    RunVerdict,
    SkipReason,
    settle,
)
from conformance.report.comparison.compare import Comparison, compare
from conformance.report.comparison.evidence import evidence_of
from conformance.report.comparison.kinds import REGRESSIONS, Kind, kind_of
from conformance.report.comparison.markdown import render_markdown
from conformance.report.comparison.page import render_page
from conformance.report.run import configuration
from conformance.report.run.brief import Brief, Shown
from conformance.report.run.record import KernelFacts, RunHead, RunRecord
from conformance.report.run.results import NAME, write_results
from conformance.report.run.rundir import link_latest
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
    given = {"reason": str(mismatch), "mismatches": (mismatch,), **others}
    return case(case_id, outcome, **given)


def kind(base: Outcome | None, new: Outcome | None) -> Kind | None:
    """What a case with these outcomes, and nothing else that differs, is called."""
    before, after = (run() if each is None else run(case("a.b", each)) for each in (base, new))
    found = compare(before, after).changes
    return found[0].kind if found else None


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (P, P, None), (P, XF, Kind.OTHERWISE), (P, F, Kind.BROKEN), (P, C, Kind.BROKEN),
        (P, T, Kind.BROKEN), (P, S, Kind.UNDECIDED), (P, E, Kind.UNDECIDED),
        (P, XP, Kind.OTHERWISE),
        (XF, P, Kind.FIXED), (XF, XP, Kind.FIXED), (XF, F, Kind.UNEXPLAINED), (XF, XF, None),
        (XP, XF, Kind.OTHERWISE), (XP, F, Kind.BROKEN), (XP, P, Kind.OTHERWISE),
        (F, F, None), (F, P, Kind.FIXED), (F, XF, Kind.EXPLAINED), (F, C, Kind.WORSE),
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
    deviation = replace(wrong("uring.known", "ENOENT"), outcome=XF, reason="io_uring is known")
    shown = Evidence(
        steps=("1. p1: close(fd4); = 0", "2. p1: write(fd4, (void *)0x200000010000, 4); = 0"),
        docs="user_events.rst@v6.12: writing: needs a listener (decided by write_core)",
    )
    text = Mismatch(3, "data", "name: a\nID: 1\n", "name: a\nID: 2\n")
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
        case("rights.other", digest="aa", course="0102"),
        case("rights.shorter", digest="bb", course="010203"),
        wrong("status.listing", "at 0x10", outcome=F, mismatches=(text,)),
        case("status.text"),
        wrong("tasks.explained"),
        *(case(f"trace.line_{n}") for n in range(3)),
        wrong("trace.wrong"),
        deviation,
        *(case(f"write.spaces_{n}") for n in range(4)),
        case("write.hangs"),
        case("write.disabled"),
        case("write.disabled_too"),
    )
    new = run(
        case("delete.busy", C, reason="Kernel panic - not syncing: Fatal exception"),
        wrong("enable.bit_63", "EFAULT"),
        case("enable.bit_64", C, reason="BUG: unable to handle page fault"),
        case("grammar.empty"),
        case("format.array_length", XP, reason=known),
        wrong("header.size", "E2BIG"),
        wrong("registration.size_short"),
        wrong("rights.other", digest="ab", course="0103"),
        wrong("rights.shorter", digest="bc", course="0102"),
        wrong("status.listing", mismatches=(replace(text, observed="name: a\nID: 3\n"),)),
        case("status.text", E, reason=reason),
        replace(wrong("tasks.explained"), outcome=XF, reason="threads share it [a link]"),
        wrong("uring.known", "ENOENT"),
        *(case(f"persist.line_{n}") for n in range(2)),
        wrong("persist.wrong"),
        *(case(f"write.spaces_{n}", adapted=("nonspaced_match",)) for n in range(4)),
        rerun,
        wrong("write.disabled", "EBUSY", evidence=shown),
        wrong("write.disabled_too", "EBUSY", evidence=shown),
        head=head(
            kernel=replace(PATCHED, config_sha256="0d1e" * 16),
            suite="0.2.0",
            host={"accel": "kvm", "machine": "x86_64"},
        ),
        contradictions=(SWITCH,),
    )
    return base, new


OPTIONS = {f"CONFIG_{letter}": ("n", "y") for letter in "ABCDEFGHIJKLMN"}


def compared_with_everything() -> Comparison:
    """One of each difference, flaky cases too."""
    base, new = everything()
    again = {
        "write.now_and_then": Shown(F),
        "write.panics": Shown(C),
    }
    also = (case("write.now_and_then"), case("write.panics"))
    base = replace(base, cases=base.cases + also, selected=base.selected + 2)
    new = replace(new, cases=new.cases + also, selected=new.selected + 2)
    return compare(base, new, more_new=[brief(new.head, again)] * 2, options=OPTIONS)


def brief(of: RunHead, cases: dict[str, Shown]) -> Brief:
    """One more run."""
    return Brief(Path("again"), of, RunVerdict.FAIL, cases)


def test_a_page_with_everything(golden: Callable[[str, str], None]) -> None:
    text = render_page(compared_with_everything())
    golden("compared.txt", text)
    assert max(map(len, text.splitlines())) <= 78


def test_everything_in_markdown(golden: Callable[[str, str], None]) -> None:
    golden("compared.md", render_markdown(compared_with_everything()))


def test_everything_has_one_of_each() -> None:
    found = compared_with_everything()
    assert {kind for kind in Kind if not found.of(kind)} == set()
    assert [each.id for each in found.flaky] == ["write.panics", "write.now_and_then"]


@pytest.mark.parametrize("render", [render_page, render_markdown])
def test_what_a_kernel_says_cannot_change_the_page(
    render: Callable[[Comparison], str],
) -> None:
    said = "\x1b[2J\x1b]0;owned\x07``` <script>alert(1)</script> [x](y) @all |\n# heading\r"
    shown = Evidence(steps=(f"1. p1: {said}; = 0",), docs=said)
    mismatch = Mismatch(1, "errno", "EINVAL", said)
    failed = case("a.b", F, reason=said, mismatches=(mismatch,), evidence=shown)
    text = render(compare(run(case("a.b"), case("a.c", E, reason=said)), run(failed)))
    assert not any(ord(each) < 32 and each != "\n" for each in text)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("# ")] == []
    if render is render_markdown:
        fences = [number for number, line in enumerate(lines) if line.strip().startswith("````")]
        assert len(fences) == 2
        inside = range(*fences)
        loose = [line for number, line in enumerate(lines) if number not in inside]
        assert not any("<script>" in line.replace("\\<", "") for line in loose)


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
    assert "and 159 more" in lines[-4]
    assert "(--json has all)" in "".join(lines[-4:])


def kept(directory: Path, record: RunRecord) -> Path:
    directory.mkdir(parents=True)
    write_results(record, directory / NAME)
    return directory


def compared(*arguments: object) -> int:
    return cli.main(["compare", *map(str, arguments)])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = kept(tmp_path / "6.12" / "20261120T174400Z", run(case("a.b"), case("a.c")))
    # A revision of the suite that judged otherwise: nothing is flaky.
    kept(tmp_path / "6.12" / "20261119T000000Z", run(case("a.b", F), head=head(suite="0.0.9")))
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
        kept(other / "2", run(case("a.b"), head=head(kernel=PATCHED)))
    elif what == "self-check":
        kept(other, run(case("a.b"), head=head(self_check=True)))
    assert compared(good, other) == 2
    assert capsys.readouterr().err.startswith(f"uevt: {other}")


BUILD = KernelFacts("6.12", "6.12.117", "6.12", build="d98b")


def same_build(day: int, *cases: CaseResult, **others: Any) -> RunRecord:
    """A run of one build on a day of a month."""
    kernel = replace(BUILD, **others)
    return run(*cases, head=head(kernel=kernel, started=f"2026-11-{day:02}T00:00:00Z"))


def several(directory: Path, *records: RunRecord) -> Path:
    """A directory of runs, none of which is called the latest."""
    for number, record in enumerate(records):
        kept(directory / f"run{number}", record)
    return directory


def test_what_runs_of_one_build_disagree_about_is_no_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = [same_build(day, case("a.b"), case("a.c")) for day in (1, 2)]
    base = several(tmp_path / "base", *right)
    runs = [wrong("a.b"), case("a.b"), wrong("a.b")]
    patched = [
        same_build(day, each, case("a.c"), id="6.12+fix", build="77c0")
        for day, each in enumerate(runs, 1)
    ]
    new = several(tmp_path / "new", *patched)
    assert compared(base, new) == 0
    said = capsys.readouterr().out
    assert "(one of 3 runs of this kernel)" in " ".join(said.split())
    assert "base: PASS in 2 of 2; new: PASS in 1, FAIL in 2 of 3" in said
    assert said.endswith("no regression: 1 flaky, 1 as before\n")
    # One run of each, and the others named.
    first = [base / "run0", new / "run0"]
    assert compared(*first) == 1
    capsys.readouterr()
    assert compared(*first, "--base", base / "run1", "--new", new / "run1") == 0
    assert "new: PASS in 1, FAIL in 1 of 2" in capsys.readouterr().out
    assert compared(*first, "--new", base / "run1") == 2
    assert "is of another kernel than" in capsys.readouterr().err


def test_one_build_compared_with_itself_has_no_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = kept(tmp_path / "good", same_build(1, case("a.b")))
    bad = kept(tmp_path / "bad", same_build(2, case("a.b", C)))
    assert compared(good, bad) == 0
    said = capsys.readouterr().out
    assert "build is the same: what differs is no change of the kernel" in said
    assert "base: PASS in 1 of 1; new: CRASH in 1 of 1" in said
    edited = kept(tmp_path / "edited", same_build(3, case("a.b", C), build="another"))
    assert compared(good, edited) == 1
    assert "build differs: the same name" in capsys.readouterr().out


def test_a_broken_run_among_several_is_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = several(tmp_path / "base", *(same_build(day, case("a.b")) for day in (1, 2)))
    (base / "half").mkdir()
    (base / "half" / NAME).write_text('{"schema": 1')
    assert compared(base, base / "run0") == 0
    assert "left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("base", "new", "suite", "changed", "expected"),
    [
        # It failed, and so ended early.
        ("010203", "0102", "0.2.0", False, Kind.BROKEN),
        ("010203", "0103", "0.2.0", True, Kind.REWRITTEN),
        # The suite is the same: the kernel made the case go another way.
        ("010203", "0103", "0.1.0", False, Kind.BROKEN),
        # An older revision did not keep how a program began.
        ("", "0103", "0.2.0", None, Kind.BROKEN),
    ],
)
def test_a_program_that_the_suite_has_changed(
    base: str, new: str, suite: str, changed: bool | None, expected: Kind
) -> None:
    before = run(case("a.b", digest="aa", course=base))
    after = run(wrong("a.b", digest="bb", course=new), head=head(suite=suite))
    (found,) = compare(before, after).changes
    assert (found.kind, found.rewritten) == (expected, changed)
    assert compare(before, after).regression is (expected is Kind.BROKEN)


def test_configurations_are_compared_by_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n", "CONFIG_A=y\nCONFIG_D=y\n"]
    runs = []
    for number, text in enumerate(texts):
        (tmp_path / "config").write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        record = same_build(1, case("a.b"), config_sha256=digest, build=str(number))
        runs.append(kept(tmp_path / str(number), record))
        configuration.keep(tmp_path / "config", runs[-1])
    assert compared("--json", *runs) == 0
    options = json.loads(capsys.readouterr().out)["config"]
    assert options == {"CONFIG_B": ["m", "n"], "CONFIG_D": ["n", "y"]}
    assert compared(*runs) == 0
    assert (
        "config differs in 2 options: CONFIG_B m -> n, CONFIG_D n -> y" in capsys.readouterr().out
    )
    # Another one than the kernel was built with, or none, says nothing.
    for spoil in (lambda file: file.write_bytes(gzip.compress(b"CONFIG_A=n")), Path.unlink):
        spoil(runs[0] / configuration.NAME)
        assert compared(*runs) == 0
        assert "(only its digests are known)" in " ".join(capsys.readouterr().out.split())


def test_the_same_deviation_is_judged_by_its_expectation_alone() -> None:
    known = replace(wrong("a.b", "ENOENT"), outcome=XF)
    assert kind_of(known, wrong("a.b", "ENOENT"), rewritten=False) is Kind.UNEXPLAINED
    assert kind_of(known, wrong("a.b", "EPERM"), rewritten=False) is Kind.BROKEN
    assert kind_of(wrong("a.b"), known, rewritten=False) is Kind.EXPLAINED


def test_evidence_begins_with_what_the_base_did_not_show() -> None:
    """A known deviation comes first in the program, and is not what is new."""
    old, anew = Mismatch(1, "errno", "0", "EPERM"), Mismatch(5, "errno", "0", "EIO")
    base = replace(wrong("a.b"), outcome=XF, mismatches=(old,))
    lines = evidence_of(wrong("a.b", mismatches=(old, anew)), base)
    assert ("kernel", ("errno: EIO",)) in lines
    assert ("more", ("1 more difference in this case",)) in lines
