"""A kernel that contradicts a dated switch of its profile."""

from __future__ import annotations

from pathlib import Path

from kernels.store.built_kernel import BuiltKernel
from tests.commands import last_line, results, uevt
from tests.test_drills import drill

CASES = "dated or persist.accepted or write.listener_of_another_event or write.nothing_registered"


def test_one_case_fails_and_the_others_are_judged_as_measured(
    tmp_path: Path, built_kernel: BuiltKernel
) -> None:
    """6.12 judged without a switch that it has: FAIL, with the hint."""
    abi = f"{built_kernel.release},ebadf_when_disabled=no"
    cases = ("--tier", "quick", "-k", CASES)
    options = ("--abi", abi, "-n", "1", *cases, "--strict", "--out", tmp_path / "out")
    done = uevt("run", "--image", built_kernel.image, *options, code=1)
    found = results(tmp_path / "out")
    failed = [case for case in found["cases"] if case["outcome"] == "CHANGED"]
    assert [case["id"] for case in failed] == ["dated.ebadf_when_disabled"]
    assert failed[0]["blame"] == "kernel"
    (contradiction,) = found["summary"]["contradictions"]
    assert (contradiction["switch"], contradiction["measured"]) == ("ebadf_when_disabled", True)
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
    options = ("--abi", abi, *cases, "--strict", "--out", tmp_path / "out")
    done = uevt("run", "--image", built_kernel.image, *options, code=1)
    assert "1 passed, 0 known bugs, 0 failed, 1 contradicted" in last_line(done)
    assert results(tmp_path / "out")["summary"]["verdict"] == "FAIL"
    assert [case["adapted"] for case in results(tmp_path / "out")["cases"]] == [[]]


def test_probe_that_loses_the_guest_is_reported(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """The probe has no result, but its panic is reported.  A case that runs needs no probe."""
    once, options = str(tmp_path / "once"), ("-k", "before")
    out = tmp_path / "out"
    found = drill("lost_probe.py", out, built_kernel, *options, code=1, UEVT_DRILL_ONCE=once)
    assert {name: case["outcome"] for name, case in found.items()} == {
        "drill.before": "PASS",
        "drill.switch.probe": "CRASH",
    }
    assert results(out)["summary"]["contradictions"] == []
    assert "sysrq triggered crash" in (out / "console.log").read_text()
    found = drill("lost_probe.py", tmp_path / "out2", built_kernel, UEVT_DRILL_ONCE=once)
    assert sorted(found) == ["drill.before", "drill.switch"]
