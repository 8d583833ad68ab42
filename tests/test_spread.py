"""Worker processes: no result is lost when one of them dies."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.commands import cases, ended, outcomes
from tests.enclosure import ROOT
from tests.test_false_green import DRILLS, PYTEST, drill

CASES = {"drill.dies": "PASS", **{f"drill.length.{length}": "PASS" for length in range(1, 9)}}


@pytest.mark.parametrize("number", ["1", "2", "20"])
def test_worker_that_dies_is_replaced(tmp_path: Path, number: str) -> None:
    died = tmp_path / "died"
    out = tmp_path / "out"
    drill(out, "dies_once.py", "--guests", number, UEVT_DIED=str(died))
    assert died.exists()
    assert outcomes(out) == CASES
    rerun = cases(out)["drill.dies"]["rerun"]
    assert (rerun["outcome"], rerun["blame"]) == ("ERROR", "host")


def with_plugin(
    tmp_path: Path, plugin: str, *options: str, name: str = "dies_once.py", code: int = 0
) -> str:
    """The output of a drill whose processes load a plugin; none of its cases ends one."""
    (tmp_path / "meddling.py").write_text(plugin)
    (tmp_path / "died").touch()
    places = {
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "PYTEST_PLUGINS": "meddling",
        "UEVT_DEAD": str(tmp_path / "dead"),
        "UEVT_DIED": str(tmp_path / "died"),
    }
    words = ("--guests", "2", *options)
    return drill(tmp_path / "out", name, *words, code=code, **places)


def test_death_after_a_result_does_not_count_for_its_case(tmp_path: Path) -> None:
    """The case ended: it does not run again, and has one result."""
    with_plugin(
        tmp_path,
        "import os, signal, pytest\n"
        "from conformance.session.controller.controller import DATA\n"
        "from conformance.session.pool.worker_process import ReportForwarder\n"
        "tell = ReportForwarder.pytest_runtest_logreport\n"
        "def dies(self, report):\n"
        "    tell(self, report)\n"
        "    ended = 'result' in getattr(report, DATA, {})\n"
        "    if ended and not os.path.exists(os.environ['UEVT_DEAD']):\n"
        "        open(os.environ['UEVT_DEAD'], 'x')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "ReportForwarder.pytest_runtest_logreport = dies\n",
    )
    assert (tmp_path / "dead").exists()
    assert outcomes(tmp_path / "out") == CASES
    assert [each["rerun"] for each in cases(tmp_path / "out").values()] == [None] * len(CASES)


def test_death_before_the_final_checks_is_no_verdict(tmp_path: Path) -> None:
    """What its last probes would have found is unknown."""
    said = with_plugin(
        tmp_path,
        "import os, signal\n"
        "from conformance.session.worker.case_hooks import CaseHooks\n"
        "CaseHooks.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n",
        code=3,
    )
    assert "ended before its final checks: killed by signal 9" in said


def test_idle_worker_takes_cases_of_a_dead_one(tmp_path: Path) -> None:
    """Each worker has one case; the other one has ended its own."""
    options = ("--guests", "2", "-k", "drill.dies or drill.length.1")
    died = str(tmp_path / "died")
    drill(tmp_path / "out", "dies_once.py", *options, UEVT_DIED=died, UEVT_LATE="1.5")
    assert outcomes(tmp_path / "out") == {"drill.dies": "PASS", "drill.length.1": "PASS"}


def test_several_workers_find_what_one_finds(tmp_path: Path) -> None:
    (tmp_path / "died").touch()
    for name, options in (("one", ()), ("two", ("--guests", "2"))):
        died = str(tmp_path / "died")
        drill(tmp_path / name, "dies_once.py", *options, UEVT_DIED=died)
    one, two = (
        {id: case["digest"] for id, case in cases(tmp_path / at).items()} for at in ("one", "two")
    )
    assert one == two


@pytest.mark.parametrize(
    ("options", "seconds", "number"),
    [
        ("--most-guests=4", 0.01, 1),
        ("--most-guests=4", 0.05, 2),
        ("--most-guests=4 --repeat=5", 0.01, 2),
        ("--most-guests=4", math.inf, 4),
        ("--guests=4", 0.01, 4),
    ],
)
def test_short_cases_get_fewer_workers(
    tmp_path: Path, options: str, seconds: float, number: int
) -> None:
    """Nine cases have taken so many seconds each."""
    started, durations = tmp_path / "started", tmp_path / "cache/durations/model.json"
    durations.parent.mkdir(parents=True)
    durations.write_text(json.dumps(dict.fromkeys(CASES, seconds)))
    (tmp_path / "died").touch()
    (tmp_path / "counting.py").write_text(
        "from conformance.session.pool.pool import WorkerPool\n"
        "start = WorkerPool._start\n"
        "def counted(self, session):\n"
        f"    with open({str(started)!r}, 'a') as file: file.write('x')\n"
        "    start(self, session)\n"
        "WorkerPool._start = counted\n"
    )
    places = {
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "PYTEST_PLUGINS": "counting",
        "UEVT_CACHE": str(tmp_path / "cache"),
        "UEVT_DIED": str(tmp_path / "died"),
    }
    drill(tmp_path / "out", "dies_once.py", *options.split(), code=0, **places)
    assert len(started.read_text()) == number
    assert outcomes(tmp_path / "out") == CASES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-k", "drill.nobody", "--guests", "2"), "nothing selected"),
        (("--guests", "0"), "--guests needs a number"),
        (("--most-guests", "0"), "--most-guests needs a number"),
        (("-n", "2"), "give --guests N"),
        (("-p", "no:uevt-spread", "--guests", "2"), "leave out -p no:uevt-spread"),
    ],
)
def test_options_without_a_pool_are_refused(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in drill(tmp_path / "out", "two_passes.py", *options, code=2)
    assert not (tmp_path / "out").exists()


def test_workers_that_end_early_end_the_run(tmp_path: Path) -> None:
    """Every worker fails before its first case."""
    said = with_plugin(
        tmp_path,
        "from conformance.session.worker.case_hooks import CaseHooks\n"
        "def launch(self): raise RuntimeError('of a drill')\n"
        "CaseHooks.launch = launch\n",
        name="two_passes.py",
        code=3,
    )
    assert "processes in a row ended early" in said
    assert "RuntimeError: of a drill" in said


def test_worker_that_dies_before_a_case_begins_ends_the_run(tmp_path: Path) -> None:
    """A test that is no case does not report that it begins."""
    deadly = tmp_path / "test_deadly.py"
    deadly.write_text("import os\ndef test_deadly(): os.kill(os.getpid(), 9)\n")
    said = drill(tmp_path / "out", "two_passes.py", str(deadly), "--guests", "2", code=3)
    assert "3 processes ended before" in said
    assert "test_deadly" in said


def test_run_interrupted_during_collection_can_be_resumed(tmp_path: Path) -> None:
    """The number of cases is unknown, and not printed."""
    impatient = (
        "found = []\n"
        "def pytest_itemcollected(item):\n"
        "    found.append(item)\n"
        "    if len(found) == 3: raise KeyboardInterrupt\n"
    )
    with_plugin(tmp_path, impatient, code=130)
    out = tmp_path / "out"
    words = (str(DRILLS / "dies_once.py"), "--kernel=model", "--guests=2", f"--resume={out}")
    ended([*PYTEST, *words], UEVT_DIED=str(tmp_path / "died"))
    assert outcomes(out) == CASES
