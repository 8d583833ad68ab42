"""The short form of `make torture`, and tests of its checks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from conformance.results.outcome import Outcome
from tests.drills import provoke
from tests.enclosure import TAG
from tests.faults import BY_NAME, CRASH, FAULTS, GUEST, HOST, PASS, Verdict
from tests.report.samples import case
from tests.torture import runs as torture_runs
from tests.torture.__main__ import chosen, table, together, torture
from tests.torture.builds import disturbed_build
from tests.torture.place import Place
from tests.torture.plugin import alone
from tests.torture.runs import Report, RunSeries, Undisturbed

CASES = {"write.a": PASS, "write.b": PASS, "write.c": PASS}
# Faults that nothing waits for until a deadline.
SHORT = ("qemu-killed", "agent-killed", "frame-flipped", "frame-doubled", "frame-delayed", "panic",
         "oops", "warning", "worker-killed", "make-killed")  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "torture")
    yield place
    place.close()


@pytest.mark.usefixtures("built_kernel")
def test_thirty_faults(tmp_path: Path) -> None:
    """No result is lost, no blame is wrong, nothing leaks and nothing is late."""
    reports = torture(Place(tmp_path / "torture"), chosen(30, 6_12, SHORT), 6_12)
    assert [wrong for report in reports for wrong in report.wrong] == [], table(reports)
    assert sum(len(report.faults) for report in reports) == 30


def test_a_seed_fixes_the_faults_and_every_kind_is_among_them() -> None:
    assert {fault.name for fault in chosen(len(FAULTS), 1)} == set(BY_NAME)
    assert chosen(300, 1) == chosen(300, 1) != chosen(300, 2)
    counted = Counter(fault.name for fault in chosen(300, 1))
    assert counted["panic"] > 4 * counted["hang"] > 0


def test_hazards_are_those_of_the_module() -> None:
    (source,) = provoke.HAZARD.glob("*.c")
    words = set(re.findall(r'\{ "(\w+)", hazard_', source.read_text()))
    assert {fault.hazard for fault in FAULTS if fault.hazard} <= words


def test_a_fault_that_ends_a_run_is_alone_in_it() -> None:
    faults = chosen(300, 1)
    runs = together(faults)
    assert Counter(fault for run in runs for fault in run) == Counter(faults)
    for run in runs:
        assert len(run) == 1 or not any(fault.alone or fault.ends for fault in run)


def begins(worker: str, case: str, at: float) -> dict[str, Any]:
    """The line of a diary for a case that begins."""
    return {"what": "begins", "worker": worker, "case": case, "at": at}


def results(out: Path, cases: Mapping[str, Verdict], rerun: Verdict | None = None) -> None:
    """Write the results of a run, with an optional rerun of write.a."""
    out.mkdir(exist_ok=True)
    found = []
    for name, (outcome, blame) in cases.items():
        result = case(name, Outcome.PASS).to_json() | {"outcome": outcome, "blame": blame}
        if rerun is not None and name == "write.a":
            first, accused = rerun
            result["rerun"] = {"outcome": first, "blame": accused, "reason": "", "of": "first"}
        found.append(result)
    (out / "results.json").write_text(json.dumps({"cases": found}))


@pytest.mark.parametrize(
    ("fault", "found", "rerun", "wrong"),
    [
        ("qemu-killed", CASES, None, ""),
        ("qemu-killed", CASES, HOST, ""),
        ("qemu-killed", CASES, GUEST, "the first attempt was ERROR guest"),
        ("qemu-killed", CASES | {"write.a": HOST}, None, "write.a ended with ERROR host"),
        ("qemu-killed", CASES | {"write.a": CRASH}, None, "write.a ended with CRASH kernel"),
        ("panic", CASES | {"write.a": CRASH}, None, ""),
        ("panic", CASES | {"write.b": CRASH}, None, ""),
        ("panic", CASES | {"write.c": CRASH}, None, "write.c ended with CRASH kernel"),
        ("panic", {"write.a": PASS, "write.b": PASS}, None, "write.c has no result"),
        ("worker-killed", {}, None, "write.a has no result"),
        ("worker-killed", CASES | {"guest.gw0": HOST}, None, ""),
        ("agent-killed", CASES | {"guest.gw0": HOST}, None, "guest.gw0 ended with ERROR host"),
    ],
)
def test_a_wrong_result_is_reported(
    place: Place, fault: str, found: Mapping[str, Verdict], rerun: Verdict | None, wrong: str
) -> None:
    """The fault hit write.a, and write.b came next in that worker."""
    lines = [
        begins("gw0", "write.a", 1.0),
        begins("gw0", "write.a", 1.1) | {"what": "strikes", "fault": fault, "latest": 1.2},
        begins("gw1", "write.c", 1.1),
        begins("gw0", "write.b", 1.5),
        begins("gw0", "write.d", 1.6),
    ]
    out = place.directory / "out"
    place.output.write_text("")
    results(out, found, rerun)
    report = Report((BY_NAME[fault],))
    windows = torture_runs._windows(lines, report.faults)
    RunSeries(place, Path("no module"))._judge(out, Undisturbed(CASES, 1.0), report, windows)
    assert wrong in "; ".join(report.wrong)
    assert bool(report.wrong) is bool(wrong)


@pytest.mark.parametrize(
    ("case", "worker", "free"),
    [
        ("write.next", "gw0", False),
        ("write.after", "gw0", True),
        ("write.soon", "gw1", False),
        ("write.later", "gw1", True),
        ("write.hit", "gw1", False),
    ],
)
def test_a_fault_waits_for_a_case_that_no_other_can_hit(case: str, worker: str, free: bool) -> None:
    """A fault killed the worker of write.hit, which is run again in gw1."""
    lines = [
        begins("gw0", "write.hit", 1.0),
        begins("gw0", "write.hit", 1.1) | {"what": "strikes", "latest": 1.5},
        begins("gw1", "write.soon", 1.1),
        begins("gw0", "write.next", 1.6),
        begins("gw0", "write.after", 1.7),
        begins("gw1", "write.later", 1.8),
        begins("gw1", "write.hit", 1.9),
    ]
    until = max(at for at, line in enumerate(lines) if line["case"] == case)
    assert alone(lines[: until + 1], worker, case) is free


def test_leftovers_are_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.enclosure._GONE_S", 0.1)
    assert place.left() == []
    (place.temporary / "forgotten").touch()
    (place.cache / "work").mkdir()
    (place.cache / "work" / "build-1").mkdir()
    left = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        env={**os.environ, TAG: place.tag},
    )
    try:
        found = " ".join(place.left())
    finally:
        left.kill()
        left.wait()
    for what in ("process", "forgotten", "work/build-1"):
        assert what in found


def test_a_killed_build_is_made_again(place: Place) -> None:
    """At several moments."""
    for seed in range(3):
        assert disturbed_build(BY_NAME["make-killed"], place, Random(seed)).wrong == []


def test_the_table_counts_faults_and_mistakes() -> None:
    killed, panic = BY_NAME["qemu-killed"], BY_NAME["panic"]
    text = table(
        [Report((killed, panic, panic), 3.0, blamed=["x"]), Report((killed,), 2.0)],
    )
    assert "| qemu-killed | QEMU: SIGKILL | 2 | 0 | 1 | 0 | 0 | 3.0 s |" in text
    assert "| panic | kernel: sysrq c | 2 | 0 | 1 | 0 | 0 | 3.0 s |" in text
    assert text.splitlines()[-1] == "| all | 2 runs | 4 | 0 | 1 | 0 | 0 | 3.0 s |"
