"""The runs of a directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from conformance.results.errors import ReportError
from conformance.results.stored_outcomes import RunOutcomes, read_outcomes
from conformance.results.stored_runs import runs_below


class Store(Struct, frozen=True):
    """The runs of kernels by start time, and the unreadable files with the reason."""

    runs: tuple[RunOutcomes, ...]
    unreadable: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, directory: Path, progress: Callable[[int], None] = lambda number: None) -> Store:
        """Read the runs, 50 ms for one of the full tier; ``progress`` gets their number.

        Self-checks are left out.  Raises ReportError if it is not a directory.
        """
        if not directory.is_dir():
            raise ReportError(directory, "is not a directory", "name one: --store DIR")
        files = sorted(runs_below(directory))
        progress(len(files))
        runs, unreadable = [], []
        for file in files:
            path = file.relative_to(directory)
            try:
                run = read_outcomes(file)
            except ReportError as error:
                unreadable.append((str(path), str(error).removeprefix(f"{file}: ")))
                continue
            if run.verdict is not None:
                runs.append(replace(run, path=path.parent))
        runs.sort(key=lambda run: (run.head.started, run.path))
        return cls(tuple(runs), tuple(unreadable))

    @property
    def kernels(self) -> list[str]:
        """The ids and releases of all kernels."""
        kernels = [run.head.kernel for run in self.runs]
        return sorted({name for each in kernels for name in (each.id, each.release) if name})

    @property
    def cases(self) -> list[str]:
        """The ids of all cases."""
        return sorted({case for run in self.runs for case in run.cases})
