"""The summary of a run: exact text, at most 100 columns, no escape sequences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace

from conformance.report.terminal.summary import render_summary
from conformance.results.case_result import CaseResult, Evidence, Mismatch
from conformance.results.outcome import Level, Outcome, SkipReason
from conformance.results.run import Functions, KernelFacts, RunRecord
from conformance.results.verdict import verdict_line
from tests.report.samples import (
    UNHURRIED,
    case,
    contradicted,
    contradiction,
    head,
    many_causes,
    mixed,
    run,
    runs,
)

Golden = Callable[[str, str], None]
SELF_CHECK = head(kernel=KernelFacts("model", "", "6.12"), self_check=True)


def test_the_summary_of_a_run_with_one_of_everything(golden: Golden) -> None:
    golden("mixed.txt", render_summary(mixed(), directory=Path("results/6.12/20261120T174400Z")))


def test_files_of_a_run_are_named_if_they_exist(tmp_path: Path) -> None:
    bare = render_summary(run(), directory=tmp_path)
    assert "report.html" not in bare
    assert "programs" not in bare
    (tmp_path / "report.html").touch()
    (tmp_path / "repro").mkdir()
    shown = render_summary(run(), directory=tmp_path).splitlines()
    assert f"report    {tmp_path}/report.html" in shown
    assert f"programs  {tmp_path}/repro: the deviations as C programs" in shown


def test_the_summary_of_a_passing_run_is_short(golden: Golden) -> None:
    reason = "known bug format-array-length: the length is not initialised"
    known = case("format.array_length", Outcome.XFAIL, reason=reason, bug="format-array-length")
    golden("good.txt", render_summary(run(*(case(f"write.n{n}") for n in range(231)), known)))


def test_the_summary_of_contradicted_switches(golden: Golden) -> None:
    golden("contradicted.txt", render_summary(contradicted()))


def lines(record: RunRecord) -> list[str]:
    """The lines of the summary."""
    return render_summary(record).split("\n")


@UNHURRIED
@given(runs())
def test_a_summary_fits_100_columns_and_ends_with_the_verdict(record: RunRecord) -> None:
    *shown, verdict, after = lines(record)
    assert after == ""
    assert verdict == verdict_line(record)
    assert verdict.startswith(f"uevt: 6.12 (6.12.117) {record.verdict}: ")
    for line in shown:
        assert len(line) <= 100
        assert line.isprintable()


# Beside those of whole summaries.
VERDICTS = {
    "fail": (
        run(case("write.a", Outcome.FAIL)),
        "6.12 (6.12.117) FAIL: 0 passed, 0 known bugs, 1 failed in 14.2 s",
    ),
    "strict": (
        run(case("write.a", Outcome.NOTE), head=head(fail_on=Level.DETAIL)),
        "6.12 (6.12.117) FAIL: 0 passed, 0 known bugs, 1 failed (--fail-on detail) in 14.2 s",
    ),
    "interrupted": (
        run(case("write.a"), selected=3),
        "6.12 (6.12.117) ERROR: 1 passed, 0 known bugs, 0 failed, 2 not run in 14.2 s",
    ),
    "not-built": (
        run(not_built=True, head=head(kernel=KernelFacts("image-6.1.0", "6.1.0", "6.1"))),
        "image-6.1.0 (6.1.0) NOT_BUILT: the kernel was built without user_events in 14.2 s",
    ),
    "self-check": (
        run(case("write.a"), head=SELF_CHECK),
        "model (profile 6.12) self-check ok: 1 case",
    ),
    "failed-self-check": (
        run(case("write.a", Outcome.FAIL), head=SELF_CHECK),
        "model (profile 6.12) self-check failed: 1 of 1 case",
    ),
    "interrupted-self-check": (
        run(case("write.a"), head=SELF_CHECK, selected=3, note="interrupted"),
        "model (profile 6.12) self-check failed: 1 of 3 cases ended: interrupted",
    ),
}


@pytest.mark.parametrize(("record", "line"), VERDICTS.values(), ids=VERDICTS)
def test_the_last_line_is_the_verdict(record: RunRecord, line: str) -> None:
    assert lines(record)[-2] == f"uevt: {line}"


@pytest.mark.parametrize(
    ("tier", "functions", "share"),
    [
        ("quick", Functions(1159, 1441, 3034), " (quick: 1 of 3,034)"),
        ("full", Functions(1159, 1441, 3034), ""),
        # An older run.
        ("quick", Functions(1159, 1441), ""),
        ("quick", None, ""),
    ],
)
def test_the_verdict_says_the_share_of_a_quick_run(
    tier: str, functions: Functions | None, share: str
) -> None:
    asked = head(asked=("--kernel=6.12", f"--tier={tier}"))
    record = run(case("write.a"), head=asked, functions=functions)
    assert verdict_line(record).endswith(f" 0 failed{share} in 14.2 s")


def test_many_causes_do_not_bury_the_summary() -> None:
    shown = lines(run(*many_causes()))
    assert "676 differences; results.json has the details" in shown
    assert "FAIL write.zz: Ezz" in shown
    assert len(shown) < 800


def test_of_several_causes_the_shortest_program_is_named() -> None:
    def failing(name: str, steps: int) -> CaseResult:
        mismatch = Mismatch(steps, "errno", f"E{steps}", "")
        program = Evidence(steps=("p1: fd = open()",) * steps)
        return case(name, Outcome.FAIL, mismatches=(mismatch,), evidence=program)

    long, short = failing("write.a", 9), failing("write.b", 4)
    assert not [line for line in lines(run(long)) if line.startswith("shortest")]
    shown = lines(run(long, short, head=head(asked=("--kernel=6.12",))))
    assert "shortest  write.b, 4 steps: uevt run --kernel 6.12 -k write.b" in shown
    name = f"write.{'b' * 40}"
    shown = lines(run(long, failing(name, 4), head=head(asked=("--kernel=6.12",))))
    at = shown.index(f"shortest  {name}, 4 steps:")
    assert shown[at + 1] == f"          uevt run --kernel 6.12 -k {name}"


def test_the_functions_that_decide_deviating_cases_are_ranked() -> None:
    common = Evidence(spec="trace_events_user.c:user_event_put: once; trace.c:user_free")
    shown = lines(
        run(
            case("write.a", Outcome.FAIL, evidence=common),
            case("write.b", Outcome.CHANGED, evidence=common),
            case("write.c", evidence=Evidence(spec="include/linux/user_events.h:user_free")),
        )
    )
    title = "cases that deviate, by the function that decides"
    assert f"{title}: user_event_put 2 of 2, user_free 2 of 3" in shown


@pytest.mark.parametrize(
    ("outcome", "same", "most"),
    [
        (Outcome.FAIL, "the same difference as write.n0 in 199 more cases: write.n1,", 30),
        (Outcome.ERROR, "the same error as write.n0 in 199 more cases: write.n1,", 20),
    ],
)
def test_a_run_that_fails_for_one_reason_has_one_block(
    outcome: Outcome, same: str, most: int
) -> None:
    shown = lines(run(*(case(f"write.n{n}", outcome, reason="E") for n in range(200))))
    assert same in str(shown)
    assert len(shown) < most


def test_the_number_of_repeated_runs_is_named() -> None:
    shown = lines(run(case("write.a"), head=head(asked=("--kernel=6.12", "--repeat=20"))))
    assert "repeat    20 runs of each case, up to an unexpected one" in shown


def test_a_contradiction_is_shown_even_if_no_case_failed() -> None:
    shown = lines(run(case("write.a"), contradictions=(contradiction(),)))
    note = "the kernel contradicts its profile in: ebadf_when_disabled; see --abi"
    assert f"note      {note}" in shown
    assert shown[-2].startswith("uevt: 6.12 (6.12.117) FAIL: 1 passed")


def test_an_abi_of_another_interface_is_left_out() -> None:
    facts = replace(head().kernel, profile="6.1")
    record = run(case("write.a"), contradictions=(contradiction(),), head=head(kernel=facts))
    advice = "6.12.117 and 6.1 have different interfaces: leave out --abi"
    assert advice in map(str.strip, lines(record))


def test_failures_that_were_shown_are_left_out() -> None:
    record = mixed()
    whole = render_summary(record)
    short = render_summary(record, shown=[case.id for case in record.cases])
    assert whole.endswith(f"\n\n{short}")
    assert short.startswith("kernel    6.12")


def test_skipped_cases_have_a_clause() -> None:
    module = [case(f"other.n{n}", Outcome.SKIP, reason=SkipReason.MODULE) for n in range(2)]
    shown = lines(run(case("write.a"), *module))
    first = shown.index(f"skipped   2: {SkipReason.MODULE.sentence}")
    assert shown[first + 1 : first + 3] == ["  other.n0", "  other.n1"]


def test_many_cases_skipped_for_one_reason_are_counted() -> None:
    unbuilt = [case(f"write.n{n}", Outcome.SKIP, reason=SkipReason.NOT_BUILT) for n in range(200)]
    shown = lines(run(*unbuilt, not_built=True))
    assert "skipped   200: the kernel was built without user_events" in shown
    assert len(shown) < 10


def test_the_reason_against_kvm_is_short() -> None:
    reason = "KVM: QEMU ended with -6: Assertion `ret == cpu->kvm_msr_buf->nmsrs' failed"
    host = {"accel": "tcg", "accel_reason": reason, "kvm": "aborts"}
    assert "host      tcg (KVM aborts, see uevt doctor)" in lines(run(head=head(host=host)))
    works = {"accel": "kvm", "accel_reason": "a kernel booted under KVM", "kvm": "works"}
    assert "host      kvm (a kernel booted under KVM)" in lines(run(head=head(host=works)))


def test_only_the_verdict_is_coloured() -> None:
    record = run(case("write.a", Outcome.FAIL))
    plain, coloured = render_summary(record), render_summary(record, colour=True)
    assert "\x1b" not in plain
    assert coloured.replace("\x1b[31mFAIL\x1b[0m", "FAIL") == plain
