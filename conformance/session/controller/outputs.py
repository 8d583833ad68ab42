"""Live output: terminal progress, streaming KTAP, annotations of a GitHub workflow."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest

from conformance.report.export import github
from conformance.report.export.ktap_stream import KtapStream
from conformance.report.terminal.progress import Live
from conformance.report.terminal.summary import render_summary
from conformance.results.case_result import CaseResult
from conformance.results.run import RunHead, RunRecord
from host.text import Outlet, is_terminal, use_colour


class _FinalOutput:
    """An output that prints at the end only."""

    def begin(self, selected: int) -> None:
        """A number of cases was selected."""

    def case(self, result: CaseResult) -> None:
        """A case ended."""

    def remark(self, result: CaseResult) -> None:
        """A result arrived that is not of a selected case."""


class WorkflowOutput(_FinalOutput):
    """Annotations and step summary of a GitHub workflow."""

    def __init__(self, *, require: bool = False) -> None:
        self._require = require

    def end(self, record: RunRecord | None) -> None:
        """The run ended; None without a result."""
        if record is None:
            return
        most = github.shared(os.environ)
        lines = github.annotate([record], most, require=self._require)
        Outlet(sys.stdout).write("".join(f"{line}\n" for line in lines))
        path = os.environ.get(github.SUMMARY_FILE)
        try:
            omitted = path and github.append_summary(Path(path), [record])
        except OSError as error:
            sys.stderr.write(f"uevt: no summary of the step: {error}\n")
            return
        if omitted:
            sys.stderr.write("uevt: no summary of the step: it has no room left\n")


class SummaryOutput(_FinalOutput):
    """The summary, where pytest itself prints progress."""

    def __init__(self, directory: Path, *, colour: bool, escape: Callable[[str], str]) -> None:
        self._directory = directory
        self._colour = colour
        self._escape = escape

    def end(self, record: RunRecord | None) -> None:
        """The run ended; None without a result."""
        if record is not None:
            text = render_summary(record, directory=self._directory, colour=self._colour)
            sys.stdout.write(self._escape(text))


Output = KtapStream | Live | WorkflowOutput | SummaryOutput


def outputs(
    config: pytest.Config, head: RunHead, directory: Path, ktap: TextIO | None
) -> list[Output]:
    """The outputs of a run; ``directory`` is the path to print."""
    colour = use_colour(sys.stdout, os.environ)
    escape = github.harmless if github.in_workflow(os.environ) else str
    found: list[Output] = []
    if ktap is not None:
        found.append(KtapStream(ktap, head, require=config.option.require, escape=escape))
    if github.in_workflow(os.environ):
        found.append(WorkflowOutput(require=config.option.require))
    # Last in the list: it prints the verdict, which is the last line.
    if not config.pluginmanager.is_blocked("terminalreporter"):
        found.append(SummaryOutput(directory, colour=colour, escape=escape))
        return found
    quiet = config.option.verbose < 0
    moving = is_terminal(sys.stdout, os.environ) and not quiet
    live = Live(
        sys.stdout, head, directory, moving=moving, colour=colour, quiet=quiet, escape=escape
    )
    return [*found, live]
