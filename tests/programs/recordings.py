"""Real recordings, and changed ones: what the kernel would answer if it were wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.abi.profile import profile_for
from conformance.programs.judge import Judge
from conformance.programs.judgement import Judgement
from vm.recorder.recording import groups

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
PROFILE, PROFILE_6_1 = map(profile_for, ("6.12.117", "6.1.192"))


def lines_of_recording(name: str) -> list[str]:
    """The lines of a recording."""
    return (RECORDINGS / f"{name}.txt").read_text().splitlines(keepends=True)


def judged(name: str, change: Callable[[list[str]], list[str]] = list) -> Judgement:
    """The judgement of a recording whose lines may be changed first."""
    profile = PROFILE_6_1 if name.endswith("_6.1") else PROFILE
    return Judge(profile).feed(groups(change(lines_of_recording(name))))


def replaced(old: str, new: str, place: int = 0) -> Callable[[list[str]], list[str]]:
    """Replace text in the ``place``-th line that has it.  Fails if there is none."""

    def change(lines: list[str]) -> list[str]:
        found = [number for number, line in enumerate(lines) if old in line][place]
        return [
            line.replace(old, new, 1) if number == found else line
            for number, line in enumerate(lines)
        ]

    return change
