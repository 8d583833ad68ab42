"""What runs suggest for expectations is the smallest edit."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.expectations.errors import ExpectationError
from conformance.expectations.loader import Expectations
from conformance.expectations.proposal import pattern_of
from conformance.results.case_result import Blame, CaseResult, Mismatch, Outcome, Rerun, Which
from conformance.results.run import RunRecord
from tests.expectations.samples import CASE, FILE, FUNCTION, deviating, expectations, kept, record
from tests.report.samples import case, contradiction

P, XF, XP = Outcome.PASS, Outcome.XFAIL, Outcome.XPASS
C, T, E = Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR


def updated(
    tmp_path: Path, file: Path, *records: RunRecord, capsys: pytest.CaptureFixture[str]
) -> tuple[list[str], str]:
    """What `update` proposes: the lines that change, and what it says beside them."""
    before = file.read_text()
    assert expectations("update", *kept(tmp_path, *records)) == 0
    assert file.read_text() == before
    told = capsys.readouterr()
    lines = [
        line
        for line in told.out.splitlines()
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    return lines, " ".join(told.err.split())


@pytest.mark.parametrize(
    ("deviate", "others", "when"),
    [
        (["6.12.117"], [], "release == 6.12.117"),
        (["7.3.4", "6.12.117"], [], "release >= 6.12.117 and release <= 7.3.4"),
        (["6.9.7", "7.3.4"], ["6.1.192"], "release >= 6.9.7 and release <= 7.3.4"),
        (
            ["6.6.30", "6.9.7"],
            ["6.6.40"],
            "release >= 6.6.30 and release <= 6.9.7 and release != 6.6.40",
        ),
    ],
)
def test_runs_of_several_kernels_become_one_condition(
    deviate: Sequence[str],
    others: Sequence[str],
    when: str,
    tmp_path: Path,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = deviating(f"{FUNCTION}.one", "t00012_e at 0x200000000000")
    records = [record(each, shown) for each in deviate]
    records += [record(each, case(f"{FUNCTION}.one")) for each in others]
    lines, _ = updated(tmp_path, file, *records, capsys=capsys)
    assert lines == [
        "+",
        "+[[expectation]]",
        f'+case = "{FUNCTION}.one"',
        "+step = 2",
        '+field = "errno"',
        r"+pattern = 't\d+_e at 0x[0-9a-f]+'",
        f'+when = "{when}"',
        '+reason = "TODO: why the kernel deviates here, and who knows of it"',
    ]


def test_a_variant_of_a_kernel_is_told_by_its_contract(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bits = record("6.1.192", deviating(f"{FUNCTION}.one", "EPERM"))
    of_bytes = record("6.1.192", case(f"{FUNCTION}.one"), profile="byte-status", id="6.1-bytes")
    lines, _ = updated(tmp_path, file, bits, of_bytes, capsys=capsys)
    assert lines[6] == '+when = "release == 6.1.192 and switch == ebadf_when_disabled"'


def test_all_variants_alike_are_one_table(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [deviating(f"{FUNCTION}.one", "EPERM"), deviating(f"{FUNCTION}.two", "EPERM")]
    lines, _ = updated(tmp_path, file, record("6.12.117", *both), capsys=capsys)
    assert [line for line in lines if "case" in line] == [f'+case = "{FUNCTION}"']
    both[1] = case(f"{FUNCTION}.two")
    lines, _ = updated(tmp_path, file, record("6.12.117", *both), capsys=capsys)
    assert [line for line in lines if "case" in line] == [f'+case = "{FUNCTION}.one"']


RERUN = Rerun(P, Blame.NONE, "", Which.SECOND)


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([case(CASE, C)], "CRASH on"),
        ([case(CASE, T)], "TIMEOUT on"),
        ([case(CASE, E)], "ERROR on"),
        ([deviating(observed="EPERM"), case(CASE)], "flaky on"),
        ([deviating(observed="EPERM"), deviating(observed="EINTR")], "flaky on"),
        ([deviating(observed="EPERM", rerun=RERUN)], "run twice"),
        ([deviating(observed="EPERM", blame=Blame.MODEL)], "blame model"),
        ([deviating(observed="BUG: KASAN", field="console", step=0)], "a complaint on the console"),
        ([deviating(mismatches=())], "without a difference"),
    ],
)
def test_what_must_not_happen_is_never_expected(
    results: Sequence[CaseResult],
    why: str,
    tmp_path: Path,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file.write_text("")
    records = [record("6.12.117", result) for result in results]
    lines, said = updated(tmp_path, file, *records, capsys=capsys)
    assert lines == []
    assert why in said
    assert "0 to add" in said


def test_no_condition_means_a_kernel_on_which_a_case_is_flaky(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("")
    shown = deviating(observed="EPERM")
    records = [record("6.1.192", shown), record("7.3.4", shown)]
    records += [record("6.12.117", shown), record("6.12.117", case(CASE))]
    lines, said = updated(tmp_path, file, *records, capsys=capsys)
    when = "release >= 6.1.192 and release <= 7.3.4 and release != 6.12.117"
    assert f'+when = "{when}"' in lines
    assert "flaky on 6.12.117" in said


def test_kernels_that_a_condition_cannot_name(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patched = record("6.12.117", deviating(observed="EPERM"), id="6.12+fix")
    lines, said = updated(tmp_path, file, patched, capsys=capsys)
    assert (lines, "what is added to a kernel: 6.12+fix" in said) == ([], True)
    tree = record("6.12.117", deviating(observed="EPERM"), id="tree-6.12.117")
    plain = record("6.12.117", deviating(outcome=XF), build="another")
    lines, said = updated(tmp_path, file, tree, plain, capsys=capsys)
    assert lines == []
    assert "no condition tells tree-6.12.117" in said
    told = record("6.12.117", deviating(observed="EPERM"))
    about = replace(told, contradictions=(contradiction(case=CASE),))
    _, said = updated(tmp_path, file, about, capsys=capsys)
    assert "--abi" in said


@pytest.mark.parametrize(
    ("records", "change"),
    [
        # Gone with a release: what came before keeps its expectation.
        (
            [record("6.1.192", deviating(outcome=XF)), record("7.3.4", case(CASE, XP))],
            ['-when = "release >= 5.18" # all of them',
             '+when = "release >= 5.18 and release < 7.3.4" # all of them'],
        ),
        (
            [record("6.1.192", case(CASE, XP)), record("7.3.4", deviating(outcome=XF))],
            ['-when = "release >= 5.18" # all of them',
             '+when = "release > 6.1.192" # all of them'],
        ),
        (
            [record("6.12.117", deviating(outcome=XF)),
             record("6.12.117", case(CASE, XP), id="6.12~debug", build="another")],
            ['-when = "release >= 5.18" # all of them',
             '+when = "release >= 5.18 and flavour != debug" # all of them'],
        ),
        # Of older kernels nothing is known.
        (
            [record("6.12.117", case(CASE, XP))],
            ['-when = "release >= 5.18" # all of them',
             '+when = "release >= 5.18 and release < 6.12.117" # all of them'],
        ),
    ],
)  # fmt: skip
def test_what_is_gone_is_narrowed(
    records: Sequence[RunRecord],
    change: list[str],
    tmp_path: Path,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert updated(tmp_path, file, *records, capsys=capsys)[0] == change


def test_what_is_left_for_no_kernel_is_taken_out_with_its_comment(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = kept(tmp_path, record("5.18", case(CASE, XP)), record("6.12.117", case(CASE, XP)))
    assert expectations("update", "--write", *runs) == 0
    top, _, rest = FILE.partition("# About the one below.\n")
    assert file.read_text() == top + "# The last one.\n" + rest.partition("# The last one.\n")[2]
    assert "1 to take out" in capsys.readouterr().err
    assert len(Expectations.load(file.parent).entries) == 1


def test_a_diff_can_be_applied_and_has_to_be_finished_by_a_person(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.rstrip("\n"))
    runs = kept(tmp_path, record("6.12.117", deviating(observed="a 'b'\n\tc\\d [x]", field="data")))
    assert expectations("update", *runs) == 0
    diff = capsys.readouterr().out
    subprocess.run(["patch", "-p1"], cwd=tmp_path, input=diff, text=True, check=True)
    with pytest.raises(ExpectationError, match="expectation 3, reason: is still to be written"):
        Expectations.load(file.parent)
    file.write_text(file.read_text().replace("TODO: ", ""))
    last = Expectations.load(file.parent).entries[-1]
    assert last.covers(Mismatch(2, "data", "", "a 'b'\n\tc\\d [x]"))
    # The first does not fit any more, and the last does.
    assert expectations("check", *runs) == 0
    assert str(last.when) == "release == 6.12.117"
    told = Expectations.load(file.parent).entries[0]
    assert str(told.when) == "release >= 5.18 and release < 6.12.117"


@pytest.mark.parametrize(
    "observed",
    ["EPERM", "t00012_e: a=1 (x)", "a\nb\tc", "^$.*+?{}[]|()\\", "at 0x7f00", "é\x01'\""],
)
def test_a_pattern_matches_what_it_was_made_of(observed: str) -> None:
    assert re.fullmatch(pattern_of(observed), observed, re.DOTALL)


def test_a_file_that_is_not_what_it_seems_is_left_alone(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tricky = FILE.replace('"it is looked up too early"', "'''\n[[expectation]]\n'''")
    file.write_text(tricky)
    runs = kept(tmp_path, record("5.18", case(CASE, XP)), record("6.12.117", case(CASE, XP)))
    assert expectations("update", "--write", *runs) == 2
    assert file.read_text() == tricky
    assert "edit it by hand" in capsys.readouterr().err


@pytest.mark.usefixtures("file")
def test_a_self_check_says_nothing_of_a_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = record("6.12.117", case(CASE))
    runs = kept(tmp_path, replace(check, head=replace(check.head, self_check=True)))
    assert expectations("update", *runs) == 2
    assert "is of a self-check" in capsys.readouterr().err
