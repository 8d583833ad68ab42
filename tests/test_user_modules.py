"""Runs on Linux 6.12 with modules of a user's: which verdict, and what is told of the module."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "fixtures" / "user_modules"
# Seconds: a module is built, and a guest boots under TCG, on a busy machine.
PATIENCE = 600


def run(
    out: Path, *arguments: str, keyword: str = "write.fault"
) -> tuple[int, dict[str, Any], str]:
    """Run cases; exit code, results.json, and what the terminal showed."""
    command = [sys.executable, "-m", "pytest", "conformance/cases", "-q", "--no-summary"]
    command += ["-p", "no:cacheprovider", f"--out={out}", f"-k{keyword}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (out / "results.json").exists(), done.stdout + done.stderr
    return done.returncode, json.loads((out / "results.json").read_text()), done.stdout


def module(name: str) -> str:
    return f"--module={MODULES / name}"


def outcomes(results: dict[str, Any]) -> dict[str, str]:
    return {case["id"]: case["outcome"] for case in results["cases"]}


def result(results: dict[str, Any], id: str) -> dict[str, Any]:
    (found,) = (case for case in results["cases"] if case["id"] == id)
    return dict(found)
