"""The commands as a user runs them, on the model and on Linux 6.12."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from conformance.results import kernel_config
from kernels.store.built_kernel import BuiltKernel
from tests.commands import cases, ended, last_line, results, uevt


def test_model_checks_itself(tmp_path: Path) -> None:
    """The self-check holds, needs no QEMU, and gives no verdict."""
    bare = tmp_path / "bin"
    bare.mkdir()
    done = uevt("run", "--kernel", "model", "--out", str(tmp_path / "out"), PATH=str(bare))
    assert re.search(r" self-check ok: [1-9]\d+ cases$", last_line(done))
    assert "verdict" not in results(tmp_path / "out")["summary"]


def test_a_kernel_named_twice_runs_once(tmp_path: Path) -> None:
    twice = ("--kernel", "model", "--kernel", "model")
    one = ("--tier", "full", "-k", "status.nothing_registered")
    done = uevt("run", *twice, *one, "--out", tmp_path / "out")
    assert done.stdout.count("self-check ok: 1 case") == 1
    assert len(cases(tmp_path / "out")) == 1
    assert "self-check ok: 1 case" in uevt("run", *twice, "--resume", tmp_path / "out").stdout


def test_conformance_of_6_12(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """Linux 6.12 keeps its ABI except for known bugs, in every report."""
    out = tmp_path / "out"
    done = uevt("run", "--kernel", "6.12", "--out", out)
    assert f"({built_kernel.release}) PASS" in last_line(done)
    found = results(out)
    outcomes = {name: case["outcome"] for name, case in cases(out).items()}
    assert found["summary"]["verdict"] == "PASS"
    assert set(outcomes.values()) == {"PASS", "XFAIL"}
    known = {each["id"]: each["bug"] for each in found["cases"] if each["outcome"] == "XFAIL"}
    assert known["format.array_length"] == "format-array-length"
    assert all(known.values())
    assert len(outcomes) >= 200
    assert found["kernel"]["config_sha256"] == built_kernel.config_sha256
    assert found["kernel"]["build"] == built_kernel.key
    assert kernel_config.kept(out, built_kernel.config_sha256) == built_kernel.config.read_text()
    for name in ("journal.jsonl", "junit.xml", "results.ktap", "report.html", "console.log"):
        assert (out / name).stat().st_size > 0


def test_plain_pytest_runs_cases_too(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """`pytest conformance/cases --kernel 6.12` is the same run; here of a folder, in two guests."""
    words = ["conformance/cases/unregister", "--kernel=6.12", "--guests=2"]
    done = ended([sys.executable, "-m", "pytest", *words, f"--out={tmp_path / 'out'}"])
    assert f"({built_kernel.release}) PASS" in last_line(done)
    console = (tmp_path / "out" / "console.log").read_text()
    assert "=== guest gw0 ===" in console
    assert "=== guest gw1 ===" in console


def test_case_that_deviates_does_not_affect_later_ones(
    tmp_path: Path, built_kernel: BuiltKernel
) -> None:
    """After a known bug the counter of multi-format events is read from the kernel."""
    few = "delete.all_formats or format.array_length or header.reg_minimum or multi_format.name"
    # A fixed order: the default one depends on earlier runs.
    options = ("--tier", "full", "-n", "1", "--shuffle", "3", "-k", few)
    uevt("run", "--image", built_kernel.image, *options, "--out", tmp_path / "out")
    journal = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    # In the order in which they ended.
    ids = [line["case"]["id"] for line in map(json.loads, journal) if line["event"] == "case"]
    behind = ids[ids.index("format.array_length") :]
    assert any(case_id.startswith("multi_format.name.") for case_id in behind), ids


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--kernel", "6.99"], "6.12", id="unknown kernel"),
        pytest.param([], "--kernel", id="no kernel"),
        pytest.param(["--kernel", "model", "-k", "no.such"], "no.such", id="nothing selected"),
        pytest.param(["--kernel", "model", "-k", "a and"], "-k", id="no expression"),
        pytest.param(["--kernel", "model", "--abi", "5.17"], "5.18", id="no such profile"),
        pytest.param(["--kernel", "model", "--abi", "6.1-byte-status"], "byte-status", id="abi"),
        pytest.param(["--kernel", "model", "--image", "x"], "exclude", id="kernel and image"),
        pytest.param(["--kernel", "model", "--abi", "6.8,x=no"], "switch", id="no such switch"),
        pytest.param(["--image", "README.md"], "bzImage", id="no image"),
        pytest.param(["--kernel", "model", "--out", "tests"], "empty", id="full directory"),
        pytest.param(["--kernel", "model", "--out", "/proc/x"], "/proc/x", id="unwritable"),
    ],
)
def test_usage_errors_take_one_line(arguments: list[str], said: str) -> None:
    """The error, its hint, and the documented exit code."""
    done = uevt("run", *arguments, code=2)
    messages = [line for line in (done.stderr + done.stdout).splitlines() if "uevt:" in line]
    assert len(messages) == 1
    assert said in messages[0]
