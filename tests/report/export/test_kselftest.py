"""kselftest output, read like LKFT and LAVA."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from msgspec.structs import replace

from conformance.report.export.kselftest import render_kselftest
from conformance.results.outcome import Blame, Level, Outcome
from conformance.results.run import RunRecord
from tests.report.export.lkft_reader import read_kselftest, slug
from tests.report.samples import UNHURRIED, case, contradicted, head, mixed, run, runs

SUMMARIES = Path(__file__).resolve().parents[3] / "docs" / "results"


@UNHURRIED
@given(runs())
def test_readers_find_exactly_the_cases(record: RunRecord) -> None:
    found = read_kselftest(render_kselftest([record]), shorten=str)
    shown = {
        f"user_events: {each.surface}_{each.id}": result_of(each.outcome, record)
        for each in record.cases
    }
    assert shown.items() <= found.items()
    programs = {f"user_events: {each.surface}" for each in record.cases}
    whole = {"user_events: uevt.run"} if record.trouble else set()
    assert found.keys() - shown.keys() == programs | whole


def result_of(outcome: Outcome, record: RunRecord) -> str:
    if outcome is Outcome.SKIP:
        return "skip"
    return "fail" if record.head.fails(outcome) else "pass"


def test_totals_count_what_the_run_counts() -> None:
    weak = [case("a.b", Outcome.CHANGED), case("a.c", Outcome.FIXED), case("a.d", Outcome.XFAIL)]
    text = render_kselftest([run(*weak)])
    assert "# # Totals: pass:2 fail:0 xfail:1 xpass:0 skip:0 error:0\n" in text
    strict = render_kselftest([run(*weak, head=head(fail_on=Level.DETAIL))])
    assert "# # Totals: pass:1 fail:1 xfail:1 xpass:0 skip:0 error:0\n" in strict


def test_the_document_of_a_run_with_one_of_everything(golden: Callable[[str, str], None]) -> None:
    golden("mixed.kselftest", render_kselftest([mixed()]))


def test_reduced_case_names_are_unique() -> None:
    ids = {
        case for file in SUMMARIES.glob("*.json") for case in json.loads(file.read_text())["cases"]
    }
    surfaces = {id.partition(".")[0] for id in ids}
    assert len(ids) > 3000
    names = surfaces | {f"{id.partition('.')[0]}_{slug(id)}" for id in ids}
    assert len(names) == len(ids) + len(surfaces)
    # Names reduced to letters and digits, as in shell variables.
    assert len({re.sub("[^a-z0-9]+", "_", id) for id in ids}) == len(ids)


def test_several_kernels_are_collections_of_their_own() -> None:
    text = render_kselftest([run(case("write.a")), run(case("write.a", Outcome.FAIL))])
    assert "# selftests: user_events/6.12: write\n" in text
    assert "not ok 2 selftests: user_events/6.12-2: write # exit=1\n" in text
    assert read_kselftest(text) == {
        "user_events_6_12_write_write_a": "pass",
        "user_events_6_12_write": "pass",
        "user_events_6_12-2_write_write_a": "fail",
        "user_events_6_12-2_write": "fail",
    }


def test_a_run_that_was_cut_off_is_a_failed_program() -> None:
    text = render_kselftest([run(case("write.a"), selected=2, note="interrupted")])
    assert text.startswith("TAP version 13\n1..2\n")
    assert text.endswith(
        "# selftests: user_events: uevt.run\n"
        "# Bail out! 1 of 2 cases ended: interrupted\n"
        "not ok 2 selftests: user_events: uevt.run # exit=1\n"
    )


def test_measured_switches_are_shown() -> None:
    lines = render_kselftest([contradicted()]).splitlines()
    shown = lines.index("# # | judged with measured switches: ebadf_when_disabled, persist")
    assert lines[shown + 1] == "# ok 1 write.a"


RUNNER = """\
BASE_DIR=$PWD
. ./kselftest/runner.sh
cd user_events
run_many *
"""
PROGRAM = "#!/bin/sh\ncat <<'END'\n{}END\nexit {}\n"
BLOCK = (
    r"(?ms)^# selftests: user_events: (\S+)\n(.*?)"
    r"^(?:not )?ok \d+ selftests: [^#\n]*(?:# )?(.*?)$"
)
PATIENCE = 60


def test_the_format_matches_the_kernels_runner(kernel_testing: Path, tmp_path: Path) -> None:
    lost = case("a.lost", Outcome.ERROR, blame=Blame.HOST, reason="gone")
    record = run(*mixed().cases, lost, case("z.skipped", Outcome.SKIP))
    record = replace(record, cases=tuple(sorted(record.cases, key=lambda each: each.id)))
    text = render_kselftest([record])
    ours = text[text.index("# selftests:") :]
    (tmp_path / "kselftest").symlink_to(kernel_testing / "selftests" / "kselftest")
    (tmp_path / "user_events").mkdir()
    for name, output_text, ended in re.findall(BLOCK, ours):
        program = tmp_path / "user_events" / name
        lines = re.sub("(?m)^# ", "", output_text)
        program.write_text(PROGRAM.format(lines, {"exit=1": 1, "SKIP": 4, "": 0}[ended]))
        program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", RUNNER],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    theirs = re.sub(r"(?m)^(TAP version 13|1\.\.\d+|# timeout set to \d+)\n", "", done.stdout)
    assert theirs.splitlines() == ours.splitlines()
