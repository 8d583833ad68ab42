"""Results of runs in which guest or host fail in the middle of a case."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernels.store.built_kernel import BuiltKernel
from tests.commands import cases, ended, results
from tests.drills.leaves_everything import LEAVES
from tests.drills.provoke import hazard_module, small_disk
from tests.enclosure import ROOT
from tests.processes import children, gone, wait_for

DRILLS = Path(__file__).parent / "drills"
# What the post-mortem found in the attempt that did not pass.
REASONS = {
    "oops_survived": "NULL pointer",
    "spins": "a processor spins in the kernel, in hazard_spin_irqs_off < hazard_write",
    "sleeps": "sleeps in the kernel (state D), in hazard_write < proc_reg_write",
    "agent_stopped": "every program of the guest waits",
    "qemu_stopped": "stopped, by a signal",
    "qemu_pauses": "QEMU has stopped the machine: paused",
}


def drill(
    name: str, out: Path, kernel: BuiltKernel, *options: str, code: int = 0, **environment: str
) -> dict[str, dict[str, Any]]:
    """Run the cases of a drill, and check the exit code; the results by case."""
    command = [sys.executable, "-m", "pytest", str(DRILLS / name), "-q", "-p", "no:cacheprovider"]
    ended([*command, f"--image={kernel.image}", f"--out={out}", *options], code, **environment)
    return cases(out)


def begun(out: Path) -> list[str]:
    """The cases of a run in the order in which they began."""
    lines = map(json.loads, (out / "journal.jsonl").read_text().splitlines())
    return [line["id"] for line in lines if line["event"] == "running"]


def test_hazards_have_distinct_outcomes(
    tmp_path: Path, built_kernel: BuiltKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each hazard has its own outcome and blame; later cases are judged."""
    (tmp_path / "once").mkdir()
    monkeypatch.setenv("UEVT_DRILL_MODULE", str(hazard_module()))
    monkeypatch.setenv("UEVT_DRILL_ONCE", str(tmp_path / "once"))
    found = drill("hazards.py", tmp_path / "out", built_kernel, code=1)
    assert results(tmp_path / "out")["summary"]["verdict"] == "FAIL"
    ends = {}
    for name, result in found.items():
        again = result["rerun"]
        ends[name.removeprefix("drill.")] = (
            f"{result['outcome']} {result['blame']}",
            f"{again['of']}: {again['outcome']} {again['blame']}" if again else "",
            [report["fingerprint"] for report in result["reports"]],
        )
    in_write = "hazard_write/proc_reg_write"
    assert ends == {
        "before": ("PASS none", "", []),
        "panic": ("CRASH kernel", "second: CRASH kernel", ["panic:sysrq-triggered-crash"]),
        "reports": ("FAIL kernel", "second: FAIL kernel", ["kasan:drill"]),
        "qemu_killed": ("PASS none", "first: ERROR host", []),
        "warns": (
            "FAIL kernel",
            "second: FAIL kernel",
            ["warn:hazard_warn_on/hazard_warn_twice/hazard_write", f"warn:hazard_warn/{in_write}"],
        ),
        "oops": ("CRASH kernel", "second: CRASH kernel", [f"oops:hazard_null/{in_write}"]),
        "oops_survived": ("CRASH kernel", "second: CRASH kernel", [f"oops:hazard_null/{in_write}"]),
        "complains_elsewhere": ("FAIL kernel", "second: FAIL kernel", ["warn:later_warn"]),
        "memory": ("PASS none", "first: ERROR guest", []),
        "spins": ("TIMEOUT kernel", "second: PASS none", [f"hang:hazard_spin_irqs_off/{in_write}"]),
        "sleeps": ("TIMEOUT kernel", "second: PASS none", [f"hang:{in_write}/vfs_write"]),
        "agent_stopped": ("PASS none", "first: ERROR guest", []),
        "qemu_stopped": ("PASS none", "first: ERROR host", []),
        "qemu_pauses": ("PASS none", "first: ERROR host", []),
        "after": ("PASS none", "", []),
    }
    for name, reason in REASONS.items():
        result = found[f"drill.{name}"]
        lost = result["outcome"] == "PASS"
        assert reason in (result["rerun"] if lost else result)["reason"], name
    assert "sysrq triggered crash" in found["drill.panic"]["evidence"]["console"]
    elsewhere = found["drill.complains_elsewhere"]["reports"][0]
    assert elsewhere["context"].startswith("kworker/")
    spins = found["drill.spins"]
    assert "for tcg" in spins["reason"] or "for kvm" in spins["reason"]
    assert "hazard_spin_irqs_off+0x" in spins["evidence"]["console"]
    assert "registers: kernel" in spins["evidence"]["console"]


def test_late_report_belongs_to_the_earlier_case(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    module = f"--module={hazard_module()}"
    # A seed that keeps four cases in order.
    out, in_order = tmp_path / "out", "--shuffle=9"
    found = drill("late.py", out, built_kernel, module, in_order, code=1)
    order = [each.partition(".")[2] for each in begun(out)]
    assert list(dict.fromkeys(order)) == ["first", "second", "third", "fourth"]
    late = found["drill.first.afterwards"]
    assert (late["outcome"], late["blame"]) == ("FAIL", "module")
    assert "seen after drill.first ended and before drill.second began" in late["reason"]
    assert [report["after"] for report in late["reports"]] == ["drill.first"]
    assert "later_warn" in late["evidence"]["console"]
    for quiet in ("first", "second", "third"):
        assert found[f"drill.{quiet}"]["outcome"] == "PASS"
    fourth = found["drill.fourth"]
    assert (fourth["outcome"], fourth["blame"]) == ("FAIL", "module")
    assert fourth["rerun"]["outcome"] == "PASS"


def test_every_case_starts_on_a_clean_guest(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """The harness restores what cases change."""
    found = drill("leaves_everything.py", tmp_path / "out", built_kernel)
    assert {name: each["reason"] for name, each in found.items() if each["reason"]} == {}
    assert len(found) == len(LEAVES) + 1


def test_full_disk_is_an_error_of_the_host(
    tmp_path: Path, built_kernel: BuiltKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is judged while the disk is full; the later report is complete."""
    with contextlib.ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(tmp_path / "disk", 4096))
        except PermissionError:
            pytest.skip("this user may not mount file systems")
        monkeypatch.setenv("UEVT_DRILL_DISK", str(disk))
        found = drill("full_disk.py", disk / "out", built_kernel)
    full = found["drill.full"]
    assert (full["outcome"], full["rerun"]["outcome"]) == ("PASS", "ERROR")
    assert full["rerun"]["blame"] == "host"
    assert "no space left" in full["rerun"]["reason"]
    assert found["drill.after"]["outcome"] == "PASS"


def test_run_ends_at_its_deadline(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    out = tmp_path / "out"
    found = drill("two_passes.py", out, built_kernel, "--deadline=0.001", code=3)
    assert results(out)["summary"]["verdict"] == "ERROR"
    late = "not judged: the run's deadline of 0.001 s has passed (--deadline)"
    for case in found.values():
        assert (case["tier"], case["reason"]) == ("quick", late)
        assert (case["outcome"], case["blame"]) == ("ERROR", "host")
    assert len(found) == 2


def test_no_qemu_outlives_a_killed_run(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """kill -9 of the run ends its QEMU."""
    command = [sys.executable, "-m", "pytest", str(DRILLS / "two_passes.py"), "-q"]
    command += [f"--image={built_kernel.image}", f"--out={tmp_path / 'out'}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as run:
        wait_for(lambda: children(run.pid, "qemu"), "start of QEMU")
        qemu = children(run.pid, "qemu")
        run.kill()
    assert qemu
    wait_for(lambda: all(map(gone, qemu)), "end of QEMU")
