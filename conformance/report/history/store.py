"""The runs of a directory, read through its index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from conformance.report.history import index
from conformance.results.errors import ReportError
from conformance.results.stored_outcomes import RunOutcomes


@dataclass(frozen=True, slots=True)
class Store:
    """The runs of kernels by start time, and the unreadable files with the reason."""

    runs: tuple[RunOutcomes, ...]
    unreadable: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, directory: Path, progress: Callable[[int], None] = lambda number: None) -> Store:
        """Bring the index up to date and read it; ``progress`` gets the number of new runs.

        Self-checks are left out.  Raises ReportError if it is not a directory.
        """
        if not directory.is_dir():
            raise ReportError(directory, "is not a directory", "name one: --store DIR")
        with closing(_refreshed(directory, progress)) as connection:
            runs = [run for run in index.runs(connection) if run.verdict is not None]
            runs.sort(key=lambda run: (run.head.started, run.path))
            return cls(tuple(runs), tuple(sorted(index.unreadable(connection))))

    @property
    def kernels(self) -> list[str]:
        """The ids and releases of all kernels."""
        kernels = [run.head.kernel for run in self.runs]
        return sorted({name for each in kernels for name in (each.id, each.release) if name})

    @property
    def cases(self) -> list[str]:
        """The ids of all cases."""
        return sorted({case for run in self.runs for case in run.cases})


def _refreshed(directory: Path, progress: Callable[[int], None]) -> sqlite3.Connection:
    connection = index.opened(directory)
    try:
        index.refresh(connection, directory, progress)
    except sqlite3.DatabaseError:
        # Locked for too long, read-only, full or damaged: leave the file to others.
        connection.close()
        connection = index.copied(directory)
        index.refresh(connection, directory, progress)
    return connection
