"""A deviating result as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given

from conformance.report.failure import documentation_link, render_failure
from conformance.results.case_result import CaseResult, Evidence, Mismatch, Outcome
from tests.report.samples import UNHURRIED, case, failure, head, results


def test_a_failure_has_everything_to_judge_and_repeat_it(
    golden: Callable[[str, str], None],
) -> None:
    golden("failure.txt", "\n".join(render_failure(failure(), head())) + "\n")


@UNHURRIED
@given(results())
def test_all_lines_but_the_command_fit_into_100_columns(result: CaseResult) -> None:
    *lines, command = render_failure(result, head())
    assert command.startswith("  rerun: uevt run --kernel 6.12 ")
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


def test_differences_in_white_space_are_visible() -> None:
    mismatch = Mismatch(3, "data", "a: 1\n", "a:  1\n")
    lines = render_failure(case("status.a", Outcome.FAIL, mismatches=(mismatch,)))
    assert "      model   data a: 1" in lines
    assert "      kernel  data a:  1" in lines


def test_a_long_console_keeps_its_beginning_and_end() -> None:
    console = "\n".join(f"line {number}" for number in range(1000))
    lines = render_failure(case("write.a", Outcome.CRASH, evidence=Evidence(console=console)))
    assert "    line 0" in lines
    assert "    line 999" in lines
    assert "    [952 lines left out; results.json has them]" in lines


def test_a_long_program_keeps_the_steps_that_differ() -> None:
    steps = tuple(f"{number}. p1: getpid();" for number in range(1, 101))
    mismatch = Mismatch(40, "value", "1", "2")
    result = case("write.a", Outcome.FAIL, evidence=Evidence(steps=steps), mismatches=(mismatch,))
    lines = render_failure(result)
    where = lines.index("    40. p1: getpid();")
    assert lines[where - 1] == "    [27 steps left out; results.json has them]"
    assert lines[where + 1 : where + 3] == ["      model   value 1", "      kernel  value 2"]
    assert lines[where + 3] == "    [24 steps left out; results.json has them]"
