"""A fake session, and small histories of kernels."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from conformance.cli.bisect import command
from tests.bisect.fakes import CASE, Bisect, History, Session
from tests.conftest import Printed, Uevt
from tests.kernels.user_trees import git, write_sources


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    """A fake session, and a store of its own."""
    fake = Session()
    monkeypatch.setattr(command, "session", fake)
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / "cache"))
    # The command sets signal handlers of its process, here that of all tests.
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return fake


@pytest.fixture
def bisect(uevt: Uevt, session: Session) -> Bisect:
    """The command with a fake session."""

    def run(tree: Path, *more: str, case_id: str = CASE, code: int = 0) -> Printed:
        root = git(tree, "rev-list", "--max-parents=0", "HEAD")
        words = ("--good", root, "--bad", "HEAD", "--case", case_id, "--tree", tree)
        return uevt("bisect", *words, "--out", tree.parent / "out", *more, code=code)

    return run


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Create a kernel repository with a commit for each state."""

    def make(*states: str) -> Path:
        tree = tmp_path / "linux"
        write_sources(tree)
        git(tree, "init", "-q")
        for number, state in enumerate(states):
            state, _, release = state.partition("@")
            if release:
                major, minor = release.split(".")
                (tree / "Makefile").write_text(f"VERSION = {major}\nPATCHLEVEL = {minor}\n")
            (tree / "state").write_text(state)
            (tree / "number").write_text(f"{number}\n")
            git(tree, "add", "-A", "-f")
            git(tree, "commit", "-q", "-m", f"number {number}: \x1b[31m {state}")
        return tree

    return make
