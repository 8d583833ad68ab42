"""A comparison as text and Markdown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.report.compare.compare import Comparison, compare
from conformance.report.compare.kinds import Kind
from conformance.report.compare.markdown import render_markdown
from conformance.report.compare.text import render_page
from conformance.results.case_result import Evidence, Mismatch
from conformance.results.judging import settle
from conformance.results.outcome import Level, Outcome, RunVerdict
from conformance.results.run import Functions, RunHead, RunRecord
from conformance.results.stored_outcomes import CaseOutcome, RunOutcomes
from tests.report.compare.test_compare import SWITCH
from tests.report.samples import PATCHED, case, head, run, wrong

F, XF, XP = Outcome.FAIL, Outcome.XFAIL, Outcome.FIXED
C, T, E = Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR


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
        case("filters.caret"),
        case("histograms.sign"),
        *(case(f"trace.line_{n}") for n in range(3)),
        wrong("trace.wrong"),
        deviation,
        *(case(f"write.spaces_{n}") for n in range(4)),
        case("write.hangs"),
        case("write.disabled"),
        case("write.disabled_too"),
        case("write.lost", E, reason=reason),
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
        replace(
            wrong("tasks.explained"), outcome=XF, reason="known bug: threads share it [a link]"
        ),
        wrong("uring.known", "ENOENT", outcome=Outcome.CHANGED, level=Level.BEHAVIOUR),
        wrong("filters.caret", outcome=Outcome.NOTE, level=Level.DETAIL),
        case("histograms.sign", XF, reason="known bug hist-sign: -4 is shown as 252"),
        *(case(f"persist.line_{n}") for n in range(2)),
        wrong("persist.wrong"),
        *(case(f"write.spaces_{n}", adapted=("nonspaced_match",)) for n in range(4)),
        rerun,
        wrong("write.disabled", "EBUSY", evidence=shown),
        wrong("write.disabled_too", "EBUSY", evidence=shown),
        case("write.lost"),
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
    """One of each difference, with flaky cases."""
    base, new = everything()
    again = {"write.now_and_then": CaseOutcome(F), "write.panics": CaseOutcome(C)}
    also = (case("write.now_and_then"), case("write.panics"))
    base = replace(base, cases=base.cases + also, selected=base.selected + 2)
    new = replace(new, cases=new.cases + also, selected=new.selected + 2)
    return compare(base, new, more_new=[brief(new.head, again)] * 2, options=OPTIONS)


def brief(of: RunHead, cases: dict[str, CaseOutcome]) -> RunOutcomes:
    """Another run."""
    return RunOutcomes(Path("again"), of, RunVerdict.FAIL, cases)


def test_the_text_of_one_of_each_difference(golden: Callable[[str, str], None]) -> None:
    text = render_page(compared_with_everything())
    golden("compared.txt", text)
    assert max(map(len, text.splitlines())) <= 78


def test_the_markdown_of_one_of_each_difference(golden: Callable[[str, str], None]) -> None:
    golden("compared.md", render_markdown(compared_with_everything()))


def test_the_sample_has_one_of_each_difference() -> None:
    found = compared_with_everything()
    assert {kind for kind in Kind if not found.of(kind)} == set()
    assert [each.id for each in found.flaky] == ["write.panics", "write.now_and_then"]


@pytest.mark.parametrize("render", [render_page, render_markdown])
def test_kernel_output_cannot_change_the_page(render: Callable[[Comparison], str]) -> None:
    output = "\x1b[2J\x1b]0;owned\x07``` <script>alert(1)</script> [x](y) @all |\n# heading\r"
    shown = Evidence(steps=(f"1. p1: {output}; = 0",), docs=output)
    mismatch = Mismatch(1, "errno", "EINVAL", output)
    failed = case("a.b", F, reason=output, mismatches=(mismatch,), evidence=shown)
    text = render(compare(run(case("a.b"), case("a.c", E, reason=output)), run(failed)))
    assert not any(ord(each) < 32 and each != "\n" for each in text)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("# ")] == []
    if render is render_markdown:
        fences = [number for number, line in enumerate(lines) if line.strip().startswith("````")]
        assert len(fences) == 2
        inside = range(*fences)
        loose = [line for number, line in enumerate(lines) if number not in inside]
        assert not any("<script>" in line.replace("\\<", "") for line in loose)


def test_the_page_of_equal_runs() -> None:
    base = run(case("a.a"), case("a.b", XF))
    new = replace(base, head=head(kernel=PATCHED))
    last = render_page(compare(base, new)).splitlines()[-1]
    assert last == "uevt: 6.12+fix against 6.12: no difference in 2 cases"


def test_the_share_that_a_run_judged_is_shown() -> None:
    base = run(case("a.a"), case("a.b"))
    new = run(case("a.a"), head=head(asked=("--tier=quick",)), functions=Functions(2, 2, 2))
    assert "0 failed (quick: 1 of 2)\n" in render_markdown(compare(base, new))


def test_many_regressions_fit_one_page() -> None:
    base = run(*(case(f"write.case_{n:03}") for n in range(200)))
    new = run(*(wrong(f"write.case_{n:03}") for n in range(200)))
    lines = render_page(compare(base, new)).splitlines()
    assert len(lines) < 80
    assert "and 159 more" in lines[-4]
    assert "(--json has all)" in "".join(lines[-4:])


def test_evidence_that_was_printed_before_is_not_repeated() -> None:
    comparison = compare(run(case("write.panics")), run(wrong("write.panics")))
    full = render_page(comparison).splitlines()
    brief = render_page(comparison, printed=["write.panics"]).splitlines()
    left = [line.split() for line in full if line not in brief]
    assert left == [["expected", "errno:", "EINVAL"], ["kernel", "errno:", "0"]]
    assert "  write.panics" in brief


def test_variants_that_conform_are_named_beside_one_that_does_not() -> None:
    base = run(*(case(f"tasks.fork.{variant}") for variant in ("thread", "vfork", "plain")))
    new = run(case("tasks.fork.thread"), wrong("tasks.fork.vfork"), case("tasks.fork.plain"))
    comparison = compare(base, new)
    assert "    but not  tasks.fork.thread, tasks.fork.plain\n" in render_page(comparison)
    assert "but not `tasks.fork.thread`, `tasks.fork.plain`" in render_markdown(comparison)
