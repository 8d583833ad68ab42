"""A deviating result as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from msgspec.structs import replace

from conformance.client.tracefs import PROBE_ATTACH
from conformance.report.difference import difference_lines
from conformance.report.failure import documentation_link, render_failure
from conformance.report.program import program_lines
from conformance.results.case_result import CaseResult, Evidence, Mismatch
from conformance.results.outcome import Outcome
from tests.report.samples import UNHURRIED, case, failure, head, results


def test_a_failure_has_everything_to_judge_and_repeat_it(
    golden: Callable[[str, str], None],
) -> None:
    golden("failure.txt", "\n".join(render_failure(failure(), head())) + "\n")


@UNHURRIED
@given(results())
def test_all_lines_but_the_command_fit_into_100_columns(result: CaseResult) -> None:
    *lines, command = render_failure(result, head())
    assert command.startswith("  rerun       uevt run --kernel 6.12 ")
    assert all(len(line) <= 100 for line in lines)
    assert all(line.isprintable() for line in [*lines, command])


@pytest.mark.parametrize(
    ("asked", "tier", "command"),
    [
        (["--kernel=6.12", "-k=write", "--tier=full"], "quick", "--kernel 6.12 -k write.a"),
        (["--kernel=6.12", "--tier=full"], "full", "--kernel 6.12 --tier full -k write.a"),
        (
            ["--tree=/src/linux 6", "--patch=a.patch", "--isolation=case", "--require"],
            "quick",
            "--tree '/src/linux 6' --patch a.patch --isolation case -k write.a",
        ),
        (["--image=b", "--append=-x", "--shuffle=7"], "quick", "--image b --append=-x -k write.a"),
    ],
)
def test_the_command_reruns_one_case_on_the_same_kernel(
    asked: list[str], tier: str, command: str
) -> None:
    result = case("write.a", Outcome.FAIL, tier=tier)
    assert head(asked=tuple(asked)).command_for(result) == f"uevt run {command}"


@pytest.mark.parametrize("end", [".leftover", ".enablers", ".afterwards", ".probe.enablers"])
def test_the_command_for_what_a_case_left_reruns_the_case(end: str) -> None:
    result = case(f"write.a{end}", Outcome.FAIL)
    assert head().command_for(result) == "uevt run --kernel 6.12 -k write.a"


def test_there_is_no_command_without_a_record_of_the_options() -> None:
    assert head(asked=()).command_for(failure()) == ""
    assert "rerun" not in render_failure(failure(), head(asked=()))[-1]


@pytest.mark.parametrize(
    ("docs", "link"),
    [
        (
            "Documentation/trace/user_events.rst@v6.12: a write needs a tracer",
            "https://elixir.bootlin.com/linux/v6.12/source/Documentation/trace/user_events.rst",
        ),
        (
            "include/linux/bpf.h@v4.1: …",
            "https://elixir.bootlin.com/linux/v4.1/source/include/linux/bpf.h",
        ),
        ("trace_dynevent.c@v6.12: no path", ""),
        ("ioctl(2): no file", ""),
        ("", ""),
    ],
)
def test_documentation_links_to_the_file_at_its_tag(docs: str, link: str) -> None:
    assert documentation_link(docs) == link


def test_a_reason_that_repeats_a_mismatch_is_left_out() -> None:
    first = failure().mismatches[0]
    lines = render_failure(replace(failure(), reason=str(first)))
    assert not any(str(first) in line for line in lines)


@pytest.mark.parametrize(
    ("mismatch", "shown"),
    [
        (("data", "a: 1\n", "a:  1\n"), ["data", "  expected  a: 1", "  kernel    a:  1"]),
        (("errno", "EBUSY", "success"), ["  expected  -1 EBUSY", "  kernel    no error"]),
        (
            ("memory p2 word", "f7 ff ff ff", "ff ff ff 7f"),
            [
                "memory p2 word: bit 3 is set, bit 31 is clear",
                "  expected  f7 ff ff ff",
                "  kernel    ff ff ff 7f",
                f"            ^^{' ' * 7}^^",
            ],
        ),
        (
            ("data", "00 " * 39 + "00", "00 " * 35 + "01 02"),
            [
                "data, from byte 32, of 40 bytes",
                "  expected  00 00 00 00 00 00 00 00",
                "  kernel    00 00 00 01 02",
                f"            {' ' * 9}^^ ^^ ^^ ^^ ^^",
            ],
        ),
        (("data", "", "a\nb"), ["data: - expected, + kernel", "  +a", "  +b"]),
        # No bytes, but numbers.
        (("value", "12", "16"), ["  expected  12", "  kernel    16"]),
        (("write_index", "10", "11"), ["write_index", "  expected  10", "  kernel    11"]),
    ],
)
def test_the_difference_is_shown_to_the_byte(
    mismatch: tuple[str, str, str], shown: list[str]
) -> None:
    result = case("status.a", Outcome.FAIL, mismatches=(Mismatch(3, *mismatch),))
    assert difference_lines(result) == ["  step 3", *(f"    {line}" for line in shown)]


def test_memory_that_is_watched_and_loaded_is_shown_once() -> None:
    sides = ("00", "10")
    found = (Mismatch(3, "data", *sides), Mismatch(3, "memory p1 word", *sides))
    shown = difference_lines(case("enable.a", Outcome.FAIL, mismatches=found))
    assert [line.strip() for line in shown[:2]] == ["step 3", "memory p1 word: bit 4 is set"]
    assert len(shown) == 5


def test_a_long_program_keeps_what_explains_the_difference() -> None:
    steps = (
        '1. p1: fd = open("user_events_data", O_RDWR)',
        '4. p1: ioctl(fd, DIAG_IOCSREG, {name_args="a"}) = 0',
        *(
            f'{each}. p1: ioctl(fd, DIAG_IOCSREG, {{name_args="x{each}"}}) = 0'
            for each in range(5, 40)
        ),
        *(f"{each}. root: cat tracing_on = {each}" for each in range(40, 60)),
        '61. p1: ioctl(fd, DIAG_IOCSDEL, "a") = 0',
        "62. p1: close(fd) = 0",
    )
    mismatch = Mismatch(61, "errno", "EBUSY", "success")
    lines = program_lines(
        case("write.a", Outcome.FAIL, evidence=Evidence(steps=steps), mismatches=(mismatch,))
    )
    assert len(lines) == 15 + 3
    assert lines[0].strip() == steps[0]
    assert lines[1].strip() == steps[1]
    assert f"  > {steps[-2]}" in lines
    assert lines[-1] == "    [1 line folded: results.json has all]"


def test_a_difference_of_a_result_belongs_to_its_call() -> None:
    steps = ("4. p1: ioctl(fd, DIAG_IOCSREG, {}) = 0", "8. p1: close(fd) = 0")
    result = case(
        "write.a",
        Outcome.FAIL,
        evidence=Evidence(steps=steps),
        mismatches=(Mismatch(5, "write_index", "0", "1"),),
    )
    assert render_failure(result)[1:6] == [
        "  step 5, p1: ioctl(DIAG_IOCSREG)",
        "    write_index",
        "      expected  0",
        "      kernel    1",
        "  program, paths below /sys/kernel/tracing",
    ]
    assert program_lines(result)[0] == f"  > {steps[0]}"


def test_polls_do_not_hide_the_program_and_the_helper_is_named() -> None:
    steps = [f"{at}. p1: {name}()" for at, name in enumerate(("open", "ioctl", "write"), 1)]
    steps += [f"4. root: echo e1 > {PROBE_ATTACH}"]
    polls = ("echo 1 > enable", "cat trace")
    steps += [f"{at}. root: {polls[at % 2]} = -1 ENOENT" for at in range(5, 40)]
    evidence = Evidence(steps=tuple(steps))
    shown = "\n".join(render_failure(replace(failure(), evidence=evidence, mismatches=())))
    assert all(f"{step}\n" in shown for step in steps[1:4])
    assert "tracing; uevt_probe is a module of uevt\n" in shown
