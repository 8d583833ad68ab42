"""Queries over many runs in a directory."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from conformance.report.history import index
from conformance.results.case_result import Outcome, RunVerdict
from conformance.results.errors import ReportError
from conformance.results.outcomes import CaseOutcome, Program
from conformance.results.run import KernelFacts

_FACTS = "run, path, started, suite, accel, verdict"
_KERNEL = "kernel, release, profile, variant, config, source, build"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run without its cases; ``path`` is its directory, relative to the store."""

    number: int
    path: str
    started: str
    suite: str
    accel: str
    verdict: RunVerdict
    kernel: KernelFacts


@dataclass(frozen=True, slots=True)
class Contents:
    """The cases of a run by number: programs of those that passed, and all others."""

    passed: Mapping[int, int]
    other: Mapping[int, tuple[str, int, str]]

    @property
    def all(self) -> set[int]:
        """The numbers of all cases."""
        return self.passed.keys() | self.other.keys()


class Store:
    """A directory of runs; use it as a context manager."""

    def __init__(
        self, directory: Path, progress: Callable[[int], None] = lambda number: None
    ) -> None:
        """Open a directory and read new runs; ``progress`` gets their number.

        Raises ReportError if it is not a directory.
        """
        if not directory.is_dir():
            raise ReportError(directory, "is not a directory", "name one: --store DIR")
        self._connection = index.opened(directory)
        try:
            index.refresh(self._connection, directory, progress)
        except sqlite3.DatabaseError:
            # Locked for too long, read-only, full or damaged: leave the file to others.
            self._connection.close()
            self._connection = index.copied(directory)
            index.refresh(self._connection, directory, progress)
        self._sets: dict[int, Mapping[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    @property
    def unreadable(self) -> list[tuple[str, str]]:
        """The unreadable results.json files, and why."""
        return list(self._rows("SELECT path, trouble FROM runs WHERE trouble <> '' ORDER BY path"))

    def kernels(self) -> list[str]:
        """The ids and releases of all kernels."""
        rows = self._rows("SELECT DISTINCT kernel, release FROM runs WHERE verdict <> ''")
        return sorted({name for row in rows for name in row if name})

    def cases(self) -> list[str]:
        """The ids of all cases."""
        return [name for (name,) in self._rows("SELECT name FROM cases ORDER BY name")]

    def runs(self) -> list[StoredRun]:
        """All runs by start time, without self-checks."""
        rows = self._rows(
            f"SELECT {_FACTS}, {_KERNEL} FROM runs WHERE verdict <> '' ORDER BY started, path"
        )
        return [_run(row) for row in rows]

    def outcomes_of(self, case: str) -> dict[int, CaseOutcome]:
        """The outcomes of a case by number of the run."""
        row = next(self._rows("SELECT id FROM cases WHERE name = ?", case), None)
        if row is None:
            return {}
        found = {}
        for run, number in self._rows("SELECT run, passed FROM runs WHERE passed IS NOT NULL"):
            if (program := self._passed(number).get(row[0])) is not None:
                found[run] = CaseOutcome(Outcome.PASS, self._program(program))
        for run, *other in self._rows(
            "SELECT run, outcome, program, reason FROM shown WHERE name = ?", row[0]
        ):
            found[run] = self._shown(*other)
        return found

    def contents(self, run: StoredRun) -> Contents:
        """The cases of a run."""
        rows = self._rows(
            "SELECT name, outcome, program, reason FROM shown WHERE run = ?", run.number
        )
        other = {name: (outcome, program, reason) for name, outcome, program, reason in rows}
        (number,) = next(self._rows("SELECT passed FROM runs WHERE run = ?", run.number))
        return Contents(self._passed(number), other)

    def shown(self, contents: Contents, case: int) -> CaseOutcome:
        """The outcome of a case of a run, by number."""
        if case in contents.passed:
            return CaseOutcome(Outcome.PASS, self._program(contents.passed[case]))
        return self._shown(*contents.other[case])

    def name(self, case: int) -> str:
        """The id of a case by its number."""
        (name,) = next(self._rows("SELECT name FROM cases WHERE id = ?", case))
        return str(name)

    def _rows(self, query: str, *values: object) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    def _passed(self, number: int) -> Mapping[int, int]:
        if number not in self._sets:
            (content,) = next(self._rows("SELECT content FROM passed WHERE id = ?", number))
            self._sets[number] = index.programs_of(content)
        return self._sets[number]

    def _shown(self, outcome: str, program: int, reason: str) -> CaseOutcome:
        return CaseOutcome(Outcome(outcome), self._program(program), reason)

    def _program(self, number: int) -> Program:
        return Program(
            *next(self._rows("SELECT digest, course FROM programs WHERE id = ?", number))
        )


def count(contents: Contents) -> dict[Outcome, int]:
    """The number of cases by outcome."""
    counted = Counter(Outcome(outcome) for outcome, _, _ in contents.other.values())
    return {Outcome.PASS: len(contents.passed), **counted}


def _run(row: Sequence[str]) -> StoredRun:
    number, path, started, suite, accel, verdict, *kernel = row
    return StoredRun(
        int(number),
        str(Path(path).parent),
        started,
        suite,
        accel,
        RunVerdict(verdict),
        KernelFacts(*kernel),
    )
