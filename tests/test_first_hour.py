"""docs/first-hour.md: its commands, one after another, with the exit codes that it states."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from kernels.store.built_kernel import BuiltKernel
from tests.test_docs import ROOT

PAGE = ROOT / "docs" / "first-hour.md"
_SECONDS = 1200

_BUILT = re.compile(r"differs? from .*, (\d+):(\d\d)$", re.MULTILINE)


def blocks(language: str) -> list[str]:
    """The blocks of the page in a language, "" for output."""
    fenced = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    return [text for name, text in fenced if name == language]


def script() -> str:
    """The commands of the page, each followed by a check of its exit code."""
    lines = []
    for block in blocks("sh"):
        for line in block.splitlines():
            command, _, code = line.partition("  # exit ")
            lines.append(command)
            lines.append(f'code=$?; [ $code = {code or 0} ] || {{ echo "exit $code"; exit 99; }}')
    return "\n".join(lines)


def test_the_page_is_a_session(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "CHECKOUT": str(ROOT)}
    began = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", script()],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    for line in "".join(blocks("")).splitlines():
        # The session at a terminal is only shown.
        if not line.startswith(("$", "uevt:", "6.12")):
            assert line.strip() in done.stdout, line
    (shown,) = blocks("diff")
    assert shown in (tmp_path / "bug.diff").read_text()
    building = sum(60 * int(m) + int(s) for m, s in _BUILT.findall(done.stderr))
    sys.stdout.write(f"first hour: {took:.0f} s, of which {building} s compile kernels\n")
