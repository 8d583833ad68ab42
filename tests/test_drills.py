"""What becomes of a run when guest or host break in the middle of a case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernels.store import BuiltKernel

ROOT = Path(__file__).resolve().parent.parent
DRILLS = Path(__file__).parent / "drills"
# A boot or two under TCG on a busy machine, in seconds.
PATIENCE = 300


def drill(
    name: str, out: Path, kernel: BuiltKernel, *options: str, **environment: str
) -> tuple[int, dict[str, Any]]:
    """Run the cases of a drill; exit code and results.json."""
    command = [sys.executable, "-m", "pytest", str(DRILLS / name), "-q", "-p", "no:cacheprovider"]
    command += [f"--image={kernel.image}", f"--out={out}", *options]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (out / "results.json").exists(), done.stdout + done.stderr
    return done.returncode, json.loads((out / "results.json").read_text())


def by_id(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in results["cases"]}


def test_panic_is_a_crash_with_evidence(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """CRASH for the case, with the panic from the console; the others are judged."""
    code, results = drill("panic.py", tmp_path / "out", built_kernel)
    cases = by_id(results)
    assert code == 1
    assert results["summary"]["verdict"] == "FAIL"
    assert cases["drill.panic"]["outcome"] == "CRASH"
    assert cases["drill.panic"]["blame"] == "kernel"
    assert "sysrq triggered crash" in cases["drill.panic"]["evidence"]["console"]
    assert cases["drill.panic"]["rerun"]["of"] == "second"
    assert cases["drill.before"]["outcome"] == "PASS"
    assert cases["drill.after"]["outcome"] == "PASS"


def test_killed_qemu_is_nobodys_failure(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """ERROR blamed on the host, whose re-run's verdict stands; the report is complete."""
    once = str(tmp_path / "once")
    code, results = drill("killed_qemu.py", tmp_path / "out", built_kernel, UEVT_DRILL_ONCE=once)
    killed = by_id(results)["drill.killed"]
    assert code == 0
    assert killed["outcome"] == "PASS"
    assert (killed["rerun"]["outcome"], killed["rerun"]["blame"]) == ("ERROR", "host")
    assert killed["rerun"]["of"] == "first"
    assert by_id(results)["drill.after"]["outcome"] == "PASS"
    journal = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in journal] == [
        "run", "plan", "running", "attempt", "guests", "case", "running", "case", "end",
    ]  # fmt: skip


def test_complaint_of_the_kernel_fails_a_case(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """A report on the console fails the case during which it came, though all answers fit."""
    code, results = drill("splat.py", tmp_path / "out", built_kernel)
    splat = by_id(results)["drill.splat"]
    assert code == 1
    assert (splat["outcome"], splat["blame"]) == ("FAIL", "kernel")
    assert "KASAN" in splat["reason"]


def test_no_qemu_outlives_a_killed_run(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """kill -9 of the run takes its QEMU along."""
    command = [sys.executable, "-m", "pytest", str(DRILLS / "panic.py"), "-q"]
    command += [f"--image={built_kernel.image}", f"--out={tmp_path / 'out'}", "-k", "drill.before"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as run:
        _wait_for(lambda: bool(_children_named("qemu", run.pid)))
        qemu = _children_named("qemu", run.pid)
        run.kill()
    assert qemu
    _wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in qemu))


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited a minute in vain"
        time.sleep(0.02)


def _children_named(name: str, parent: int) -> list[int]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            head, _, tail = (directory / "stat").read_text().rpartition(")")
        except OSError:
            continue
        if int(tail.split()[1]) == parent and name in head:
            found.append(int(directory.name))
    return found
