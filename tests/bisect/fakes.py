"""The command line of `uevt bisect`, and a fake session."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from conformance.cli.main import main
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Outcome, SkipReason
from conformance.results.results_json import NAME, write_results
from conformance.results.run import RunRecord
from tests.kernels.user_trees import git
from tests.report.samples import case, failure, run

CASE = "multi_format.name.plain"
FUNCTION = "multi_format.name"
OLD_CASE = "status_page.length"

Caught = pytest.CaptureFixture[str]
# Create a kernel repository with a commit for each state.
History = Callable[..., Path]


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


def bisect(tree: Path, *more: str, case_id: str = CASE, first: str = "") -> int:
    """The exit code of the command for a history from its root, or ``first``, to its head."""
    root = git(tree, "rev-list", "--max-parents=0", "HEAD")
    out = ("--out", str(tree.parent / "out"))
    words = ("--good", first or root, "--bad", "HEAD", "--case", case_id)
    return main(["bisect", *words, "--tree", str(tree), *out, *more])
