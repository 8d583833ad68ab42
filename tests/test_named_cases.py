"""`uevt run --only` and `--frozen` on the model, and LTP runtest files read and run by kirk."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.commands import cases, ended, results
from tests.commands import uevt as run_uevt
from tests.conftest import Uevt

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
CASE = "status.file_mode"
LIST = f"# uevt 9.9: 3 cases, each with the digests of its programs\n{CASE}\nwrite.gone\nwrite.z\n"


def judge(out: Path, *words: str, code: int = 0) -> str:
    """Judge cases on the model; standard error."""
    return run_uevt("run", "--kernel=model", f"--out={out}", *words, code=code).stderr


def test_only_runs_the_case_with_this_id(tmp_path: Path) -> None:
    """The id of another case begins with this one."""
    judge(tmp_path / "out", "--only", "write.no_fields.index", "--only", CASE)
    assert cases(tmp_path / "out").keys() == {CASE, "write.no_fields.index"}
    assert results(tmp_path / "out")["tier"] == "full"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "status.file_mod"], f"has no case 'status.file_mod'; did you mean {CASE}?"),
        (["--only", "enable.every_change", "--abi", "6.1"], "does not apply to profile 6.1"),
        (["--frozen", "LIST", "-k", "write"], "LIST has no case of tier quick"),
        (["--frozen", "no-such-list"], "No such file or directory; write one with uevt cases"),
    ],
)
def test_what_names_no_case_is_a_usage_error(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "LIST").write_text(LIST)
    words = [str(tmp_path / "LIST") if word == "LIST" else word for word in words]
    assert says in judge(tmp_path / "out", *words, code=2)
    assert not (tmp_path / "out").exists()


def test_a_frozen_list_selects_and_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "LIST").write_text(LIST)
    judge(tmp_path / "out", "--frozen", str(tmp_path / "LIST"))
    assert list(cases(tmp_path / "out")) == [CASE]
    share = results(tmp_path / "out")["summary"]["frozen"]
    assert (share["list"], share["listed"], share["judged"]) == ("9.9", 3, 1)
    assert share["other_programs"] == [CASE]


def kirk(directory: Path, runtest: str, *words: str) -> str:
    """Run kirk on the suite `uevt`; its output."""
    for name in ("ltp/runtest", "ltp/testcases/bin", "tmp"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "ltp/runtest/uevt").write_text(runtest)
    command = [str(BIN / "kirk"), "--no-colors", "--tmp-dir", str(directory / "tmp")]
    root = str(directory / "ltp")
    return ended([*command, "--run-suite", "uevt", *words], LTPROOT=root).stdout


def test_kirk_reads_a_test_for_each_case(uevt: Uevt, tmp_path: Path) -> None:
    command = "uevt run --kernel 6.12"
    given = ("cases", "--kernel", "6.12", "--tier", "quick")
    runtest = uevt(*given, "--runtest", command).out
    number = int(uevt(*given).out.splitlines()[-1].split()[2])
    names = [line.split()[0] for line in runtest.splitlines()]
    assert len(set(names)) == len(names) == number > 300
    output = kirk(tmp_path, runtest, "--dry-run")
    assert set(names) <= set(output.replace(":", " ").split())


# The exit codes of `uevt run --exit-style ltp`, and kirk's words for them.
STATUSES = {0: "pass", 1: "fail", 2: "brok", 32: "conf"}


def test_kirk_shows_each_result(uevt: Uevt, tmp_path: Path) -> None:
    run = shlex.join([str(BIN / "uevt"), "run", "--kernel", "model"])
    ids = ("cases", "-k", CASE, "--tier", "quick", "--runtest")
    runtest = uevt(*ids, run).out
    assert runtest.startswith(f"{CASE} ")
    older = uevt("cases", "-k", "enable.every_change", "--runtest", f"{run} --abi 6.1").out
    stubs = "".join(f"exit-{code} sh -c 'exit {code}'\n" for code in STATUSES)
    report = tmp_path / "report.json"
    kirk(tmp_path, runtest + older + stubs, "--json-report", str(report))
    found = json.loads(report.read_text())["results"]
    assert {each["test_fqn"]: each["status"] for each in found} == {
        CASE: "pass",
        "enable.every_change": "conf",
        **{f"exit-{code}": status for code, status in STATUSES.items()},
    }


@pytest.mark.parametrize("command", ["", " ", "uevt run\nrm -rf x"])
def test_a_command_is_one_line(uevt: Uevt, command: str) -> None:
    assert "needs a command on one line" in uevt("cases", "--runtest", command, code=2).err
