"""The commands as a user runs them, on the model and on Linux 6.12."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from conformance.results import kernel_config
from kernels.store.built_kernel import BuiltKernel

ROOT = Path(__file__).resolve().parent.parent
UEVT = ROOT / ".venv" / "bin" / "uevt"
# Seconds; a run takes a small part of it on an idle machine.
PATIENCE = 600


def uevt(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(UEVT), *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.strip().splitlines()[-1]


def test_model_checks_itself(tmp_path: Path) -> None:
    """The self-check holds, needs no QEMU, and gives no verdict."""
    bare = tmp_path / "bin"
    bare.mkdir()
    done = uevt("run", "--kernel", "model", "--out", str(tmp_path / "out"), PATH=str(bare))
    assert done.returncode == 0, done.stdout
    assert re.search(r" self-check ok: [1-9]\d+ cases$", last_line(done))
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "verdict" not in results["summary"]


def test_conformance_of_6_12(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """Linux 6.12 keeps its ABI except for known bugs, in every report."""
    out = tmp_path / "out"
    done = uevt("run", "--kernel", "6.12", "--out", str(out))
    assert done.returncode == 0, done.stdout
    assert f"({built_kernel.release}) PASS" in last_line(done)
    results = json.loads((out / "results.json").read_text())
    outcomes = {case["id"]: case["outcome"] for case in results["cases"]}
    assert results["summary"]["verdict"] == "PASS"
    assert set(outcomes.values()) == {"PASS", "XFAIL"}
    known = {case["id"]: case["bug"] for case in results["cases"] if case["outcome"] == "XFAIL"}
    assert known["format.array_length"] == "format-array-length"
    assert all(known.values())
    assert len(outcomes) >= 200
    assert results["kernel"]["config_sha256"] == built_kernel.config_sha256
    assert results["kernel"]["build"] == built_kernel.key
    assert kernel_config.kept(out, built_kernel.config_sha256) == built_kernel.config.read_text()
    for name in ("journal.jsonl", "junit.xml", "results.ktap", "report.html", "console.log"):
        assert (out / name).stat().st_size > 0


def test_plain_pytest_runs_cases_too(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """`pytest conformance --kernel 6.12` is the same run, with two guests."""
    done = subprocess.run(
        [str(UEVT.with_name("pytest")), "conformance", "--kernel", "6.12", "-k", "unregister",
         "--guests", "2", "--out", str(tmp_path / "out")],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert f"({built_kernel.release}) PASS" in last_line(done)
    console = (tmp_path / "out" / "console.log").read_text()
    assert "=== guest gw0 ===" in console
    assert "=== guest gw1 ===" in console


def test_case_that_deviates_does_not_affect_later_ones(
    tmp_path: Path, built_kernel: BuiltKernel
) -> None:
    """After a known bug the counter of multi-format events is read from the kernel."""
    cases = "delete.all_formats or format.array_length or header.reg_minimum or multi_format.name"
    # A fixed order: the default one depends on earlier runs.
    options = ("--tier", "full", "-n", "1", "--shuffle", "3", "-k", cases)
    image = str(built_kernel.image)
    done = uevt("run", "--image", image, *options, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout
    journal = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    # In the order in which they ended.
    ids = [line["case"]["id"] for line in map(json.loads, journal) if line["event"] == "case"]
    behind = ids[ids.index("format.array_length") :]
    assert any(case_id.startswith("multi_format.name.") for case_id in behind), ids


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--kernel", "6.99"], 2, "6.12", id="unknown kernel"),
        pytest.param([], 2, "--kernel", id="no kernel"),
        pytest.param(["--kernel", "model", "-k", "no.such"], 2, "no.such", id="nothing selected"),
        pytest.param(["--kernel", "model", "-k", "a and"], 2, "-k", id="no expression"),
        pytest.param(["--kernel", "model", "--abi", "5.17"], 2, "5.18", id="no such profile"),
        pytest.param(["--kernel", "model", "--abi", "6.1-byte-status"], 2, "byte-status", id="abi"),
        pytest.param(["--kernel", "model", "--image", "x"], 2, "exclude", id="kernel and image"),
        pytest.param(["--kernel", "model", "--abi", "6.8,x=no"], 2, "switch", id="no such switch"),
        pytest.param(["--image", "README.md"], 2, "bzImage", id="no image"),
        pytest.param(["--kernel", "model", "--out", "tests"], 2, "empty", id="full directory"),
        pytest.param(["--kernel", "model", "--out", "/proc/x"], 2, "/proc/x", id="unwritable"),
    ],
)
def test_usage_errors_take_one_line(arguments: list[str], code: int, said: str) -> None:
    """The error, its hint, and the documented exit code."""
    done = uevt("run", *arguments)
    messages = [line for line in (done.stderr + done.stdout).splitlines() if "uevt:" in line]
    assert done.returncode == code, done.stdout + done.stderr
    assert len(messages) == 1
    assert said in messages[0]
