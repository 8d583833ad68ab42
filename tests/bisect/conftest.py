"""A fake session of `uevt bisect`, and small histories of kernels."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from conformance.cli.bisect import command
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Outcome, SkipReason
from conformance.results.results_json import NAME, write_results
from conformance.results.run import RunRecord
from tests.conftest import Printed, Uevt
from tests.kernels.user_trees import git, write_sources
from tests.report.samples import case, failure, run

CASE = "multi_format.name.plain"
FUNCTION = "multi_format.name"
OLD_CASE = "status_page.length"

# Create a kernel repository with a commit for each state.
History = Callable[..., Path]
# Bisect a history from its root to its head, with further words.
Bisect = Callable[..., Printed]


class Session:
    """A fake session: a commit's file `state` determines the results of its kernel."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.options: list[Namespace] = []
        # What each state becomes when it is tested again.
        self.later: dict[str, str] = {}

    def __call__(
        self,
        options: Namespace,
        kernel: str | None,
        out: str,
        /,
        stdout: IO[str] | None = None,
        runs: object = None,
        stderr: IO[str] | None = None,
    ) -> int:
        assert kernel is None
        assert stderr is not None
        state = git(Path(options.tree), "show", f"{options.ref}:state")
        state = self.later.get(state, state) if state in self.judged else state
        self.judged.append(state)
        self.options.append(options)
        if state == "broken":
            stderr.write("uevt: building it failed\n    fork.c: error\n")
            return 125
        if state == "host":
            stderr.write("uevt: QEMU is missing; install it\n")
            return 129
        if state == "stopped":
            return 130
        write_results(record_of(state.partition(" ")[0]), Path(out) / NAME)
        return 0


def record_of(state: str) -> RunRecord:
    """The results of a kernel in that state."""
    other = case("multi_format.name.plain_too", Outcome.FAIL)
    match state:
        case "none":
            return run(_result(Outcome.SKIP, reason=SkipReason.NOT_BUILT), not_built=True)
        case "skip":
            return run(_result(Outcome.SKIP, reason=SkipReason.CONTRADICTED))
        case "adapted":
            return run(_result(Outcome.FAIL, adapted=("persist",)))
        case "error":
            return run(_result(Outcome.ERROR, reason="no agent after a boot"))
        case "cut":
            return run(selected=2)
        case "missing":
            return run(other)
        case "good":
            return run(_result(Outcome.PASS), other)
        case "bad":
            return run(_result(Outcome.FAIL, reason="\x1b[31mit is\nwritten"))
    return run(_result(Outcome(state.upper())))


def _result(outcome: Outcome, **others: object) -> CaseResult:
    return case(CASE, outcome, evidence=failure().evidence, **others)


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
