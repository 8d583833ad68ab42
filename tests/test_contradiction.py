"""A kernel that contradicts a dated switch of its profile."""

from __future__ import annotations

import json
from pathlib import Path

from kernels.store.built_kernel import BuiltKernel
from tests.test_drills import by_id, drill
from tests.test_end_to_end import last_line, uevt

CASES = "dated or persist.accepted or write.listener_of_another_event or write.nothing_registered"


def test_one_case_fails_and_the_others_are_judged_as_measured(
    tmp_path: Path, built_kernel: BuiltKernel
) -> None:
    """6.12 judged without a switch that it has: FAIL, with the hint."""
    abi = f"{built_kernel.release},ebadf_when_disabled=no"
    cases = ("--tier", "quick", "-k", CASES)
    options = ("--abi", abi, "-n", "1", *cases, "--strict", "--out", str(tmp_path / "out"))
    done = uevt("run", "--image", str(built_kernel.image), *options)
    assert done.returncode == 1, done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    failed = [case for case in results["cases"] if case["outcome"] == "CHANGED"]
    assert [case["id"] for case in failed] == ["dated.ebadf_when_disabled"]
    assert failed[0]["blame"] == "kernel"
    (found,) = results["summary"]["contradictions"]
    assert (found["switch"], found["measured"]) == ("ebadf_when_disabled", True)
    printed = done.stdout.splitlines()
    assert any(
        line.startswith("  ebadf_when_disabled: on in this kernel, off in the") for line in printed
    )
    assert f"--abi {built_kernel.release},ebadf_when_disabled=yes" in done.stdout
    assert "FAIL" in last_line(done)


def test_contradicted_switch_fails_a_run_without_its_case(
    tmp_path: Path, built_kernel: BuiltKernel
) -> None:
    abi = f"{built_kernel.release},ebadf_when_disabled=no"
    cases = ("--tier", "quick", "-k", "write.nothing_registered")
    options = ("--abi", abi, *cases, "--strict", "--out", str(tmp_path / "out"))
    done = uevt("run", "--image", str(built_kernel.image), *options)
    assert done.returncode == 1, done.stdout
    assert "1 passed, 0 known bugs, 0 failed, 1 contradicted" in last_line(done)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["summary"]["verdict"] == "FAIL"
    assert [case["adapted"] for case in results["cases"]] == [[]]


def test_probe_that_loses_the_guest_is_reported(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """The probe has no result, but its panic is reported.  A case that runs needs no probe."""
    once, options = str(tmp_path / "once"), ("-k", "before")
    code, results = drill(
        "lost_probe.py", tmp_path / "out", built_kernel, *options, UEVT_DRILL_ONCE=once
    )
    assert code == 1
    cases = by_id(results)
    assert {name: case["outcome"] for name, case in cases.items()} == {
        "drill.before": "PASS",
        "drill.switch.probe": "CRASH",
    }
    assert results["summary"]["contradictions"] == []
    assert "sysrq triggered crash" in (tmp_path / "out" / "console.log").read_text()
    code, results = drill("lost_probe.py", tmp_path / "out2", built_kernel, UEVT_DRILL_ONCE=once)
    assert (code, sorted(by_id(results))) == (0, ["drill.before", "drill.switch"])
