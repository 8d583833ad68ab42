"""Who is told of a run while it runs: a person, and a program that reads KTAP."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TextIO

import pytest

from conformance.cases.case import Tier
from conformance.expectations.loader import Expectations
from conformance.report.export import github
from conformance.report.export.ktap_stream import KtapStream
from conformance.report.known_deviations import stale
from conformance.report.terminal.progress import Live
from conformance.report.terminal.summary import render_summary
from conformance.results.case_result import CaseResult
from conformance.results.run import RunHead, RunRecord
from host.text import Outlet, is_terminal, use_colour


class View(Protocol):
    """Something that is told of a run."""

    def begin(self, selected: int) -> None:
        """So many cases will end."""

    def case(self, result: CaseResult) -> None:
        """A case ended."""

    def remark(self, result: CaseResult) -> None:
        """Something ended that is no selected case."""

    def end(self, record: RunRecord | None) -> None:
        """The run is over; None where it has no result."""


def views(config: pytest.Config, head: RunHead, directory: Path, ktap: TextIO | None) -> list[View]:
    """All that are told of a run; ``directory`` is said to whoever may look into it."""
    colour = use_colour(sys.stdout, os.environ)
    escape = github.harmless if github.in_workflow(os.environ) else str
    told: list[View] = []
    if ktap is not None:
        told.append(KtapStream(ktap, head, require=config.option.require, escape=escape))
    if github.in_workflow(os.environ):
        told.append(Workflow(require=config.option.require))
    # The verdict is the last line.
    if not config.pluginmanager.is_blocked("terminalreporter"):
        told.append(_Summary(directory, _stale_in(config), colour=colour, escape=escape))
        return told
    quiet = config.option.verbose < 0
    moving = is_terminal(sys.stdout, os.environ) and not quiet
    live = Live(
        sys.stdout,
        head,
        directory,
        moving=moving,
        colour=colour,
        quiet=quiet,
        escape=escape,
        stale=_stale_in(config),
    )
    return [*told, live]


def _stale_in(config: pytest.Config) -> Callable[[RunRecord], list[str]]:
    """Finds the expectations that a run with these options shows to be of no use."""
    # Once cases are selected pytest has no keyword any more.
    every = config.option.tier == Tier.FULL.value and not config.option.keyword
    known = Expectations.load()

    def found(record: RunRecord) -> list[str]:
        problems = stale(record, known, every=every)
        return [f"{each.entry.case} ({each.problem.short})" for each in problems]

    return found


class _AtEnd:
    """Has nothing to tell before a run is over."""

    def begin(self, selected: int) -> None:
        """See View."""

    def case(self, result: CaseResult) -> None:
        """See View."""

    def remark(self, result: CaseResult) -> None:
        """See View."""


class Workflow(_AtEnd):
    """Annotates a workflow of GitHub, and adds to the summary of its step."""

    def __init__(self, *, require: bool = False) -> None:
        self._require = require

    def end(self, record: RunRecord | None) -> None:
        """See View."""
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


class _Summary(_AtEnd):
    """Where pytest tells of the cases as they end, only the end is left to tell."""

    def __init__(
        self,
        directory: Path,
        stale: Callable[[RunRecord], list[str]],
        *,
        colour: bool,
        escape: Callable[[str], str],
    ) -> None:
        self._directory = directory
        self._stale = stale
        self._colour = colour
        self._escape = escape

    def end(self, record: RunRecord | None) -> None:
        """See View."""
        if record is not None:
            text = render_summary(
                record,
                directory=self._directory,
                colour=self._colour,
                stale=self._stale(record),
            )
            sys.stdout.write(self._escape(text))
