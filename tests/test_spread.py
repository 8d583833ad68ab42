"""Worker processes: no result is lost when one of them dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.results.results_json import NAME
from tests.test_false_green import DRILLS, drill, outcomes

CASES = {"drill.dies": "PASS", **{f"drill.length.{length}": "PASS" for length in range(1, 9)}}


@pytest.mark.parametrize("number", ["1", "2", "20"])
def test_worker_that_dies_is_replaced(tmp_path: Path, number: str) -> None:
    died = tmp_path / "died"
    out = tmp_path / "out"
    code, said = drill(out, "dies_once.py", "--guests", number, UEVT_DIED=str(died))
    assert code == 0, said
    assert died.exists()
    assert outcomes(out) == CASES
    (dies,) = (case for case in cases(out) if case["id"] == "drill.dies")
    assert (dies["rerun"]["outcome"], dies["rerun"]["blame"]) == ("ERROR", "host")


def with_plugin(tmp_path: Path, code: str) -> tuple[int, str]:
    """Exit code and output of a drill whose processes load a plugin that ends them."""
    (tmp_path / "ends_workers.py").write_text(code)
    (tmp_path / "died").touch()
    places = {
        "PYTHONPATH": f"{tmp_path}:{DRILLS.parents[1]}",
        "PYTEST_PLUGINS": "ends_workers",
        "UEVT_DEAD": str(tmp_path / "dead"),
        "UEVT_DIED": str(tmp_path / "died"),
    }
    return drill(tmp_path / "out", "dies_once.py", "--guests", "2", **places)


def test_death_after_a_result_does_not_count_for_its_case(tmp_path: Path) -> None:
    """The case ended: it does not run again, and has one result."""
    code, said = with_plugin(
        tmp_path,
        "import os, signal, pytest\n"
        "from conformance.session.controller.controller import RESULT\n"
        "from conformance.session.pool.worker_process import ReportForwarder\n"
        "tell = ReportForwarder.pytest_runtest_logreport\n"
        "def dies(self, report):\n"
        "    tell(self, report)\n"
        "    if hasattr(report, RESULT) and not os.path.exists(os.environ['UEVT_DEAD']):\n"
        "        open(os.environ['UEVT_DEAD'], 'x')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "ReportForwarder.pytest_runtest_logreport = dies\n",
    )
    assert code == 0, said
    assert (tmp_path / "dead").exists()
    assert outcomes(tmp_path / "out") == CASES
    assert [each["rerun"] for each in cases(tmp_path / "out")] == [None] * len(CASES)


def test_death_before_the_final_checks_is_no_verdict(tmp_path: Path) -> None:
    """What its last probes would have found is unknown."""
    code, said = with_plugin(
        tmp_path,
        "import os, signal\n"
        "from conformance.session.worker.case_hooks import CaseHooks\n"
        "CaseHooks.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n",
    )
    assert code == 3, said
    assert "ended before its final checks: killed by signal 9" in said


def test_idle_worker_takes_cases_of_a_dead_one(tmp_path: Path) -> None:
    """Each worker has one case; the other one has ended its own."""
    options = ("--guests", "2", "-k", "drill.dies or drill.length.1")
    died = str(tmp_path / "died")
    code, said = drill(tmp_path / "out", "dies_once.py", *options, UEVT_DIED=died, UEVT_LATE="1.5")
    assert code == 0, said
    assert outcomes(tmp_path / "out") == {"drill.dies": "PASS", "drill.length.1": "PASS"}


def test_several_workers_find_what_one_finds(tmp_path: Path) -> None:
    (tmp_path / "died").touch()
    for name, options in (("one", ()), ("two", ("--guests", "2"))):
        died = str(tmp_path / "died")
        assert drill(tmp_path / name, "dies_once.py", *options, UEVT_DIED=died)[0] == 0
    one, two = (
        {case["id"]: case["digest"] for case in cases(tmp_path / at)} for at in ("one", "two")
    )
    assert one == two


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("-k", "drill.nobody", "--guests", "2"), 2, "nothing selected"),
        (("--guests", "0"), 2, "--guests needs a number"),
        (("-n", "2"), 2, "give --guests N"),
        (("-p", "no:uevt-spread", "--guests", "2"), 2, "leave out -p no:uevt-spread"),
    ],
)
def test_options_without_a_pool_are_refused(
    tmp_path: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    found, said = drill(tmp_path / "out", "two_passes.py", *options)
    assert (found, message in said) == (code, True), said
    assert not (tmp_path / "out").exists()


def test_exitfirst_ends_all_workers(tmp_path: Path) -> None:
    both = (str(DRILLS / "two_passes.py"), "-x", "--guests", "2")
    assert drill(tmp_path, "nothing_done.py", *both)[0] == 3


def test_workers_that_end_early_end_the_run(tmp_path: Path) -> None:
    """Every worker fails before its first case."""
    (tmp_path / "breaks.py").write_text(
        "from conformance.session.worker.case_hooks import CaseHooks\n"
        "def launch(self): raise RuntimeError('of a drill')\n"
        "CaseHooks.launch = launch\n"
    )
    places = {"PYTHONPATH": f"{tmp_path}:{DRILLS.parents[1]}", "PYTEST_PLUGINS": "breaks"}
    code, said = drill(tmp_path / "out", "two_passes.py", "--guests", "2", **places)
    assert code == 3
    assert "processes in a row ended early" in said
    assert "RuntimeError: of a drill" in said


def test_worker_that_dies_before_a_case_begins_ends_the_run(tmp_path: Path) -> None:
    """A test that is no case does not report that it begins."""
    deadly = tmp_path / "test_deadly.py"
    deadly.write_text("import os\ndef test_deadly(): os.kill(os.getpid(), 9)\n")
    code, said = drill(tmp_path / "out", "two_passes.py", str(deadly), "--guests", "2")
    assert code == 3, said
    assert "3 processes ended before" in said
    assert "test_deadly" in said


def test_run_interrupted_during_collection_can_be_resumed(tmp_path: Path) -> None:
    """The number of cases is unknown, and not printed."""
    (tmp_path / "impatient.py").write_text(
        "import os\n"
        "found = []\n"
        "def pytest_itemcollected(item):\n"
        "    found.append(item)\n"
        "    if len(found) == 3 and 'UEVT_IMPATIENT' in os.environ: raise KeyboardInterrupt\n"
    )
    places = {"PYTHONPATH": f"{tmp_path}:{DRILLS.parents[1]}", "PYTEST_PLUGINS": "impatient"}
    out = tmp_path / "out"
    words = [sys.executable, "-m", "pytest", str(DRILLS / "dies_once.py"), "--kernel=model"]
    (tmp_path / "died").touch()
    places["UEVT_DIED"] = str(tmp_path / "died")
    for impatient, code in (({"UEVT_IMPATIENT": ""}, 130), ({}, 0)):
        environment = {**os.environ, **places, **impatient}
        done = subprocess.run(
            [*words, "--guests=2", f"--resume={out}"],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
    assert outcomes(out) == CASES


def cases(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / NAME).read_text())["cases"]
    return found
