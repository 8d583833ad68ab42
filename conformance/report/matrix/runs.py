"""The runs that a report is about: found below what a user names, and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.results import results_json
from conformance.results.directory import COVERAGE, LATEST, find_run
from conformance.results.errors import ReportError
from conformance.results.files import read_json
from conformance.results.json_codec import SchemaError, decode
from conformance.results.run import RunRecord


@dataclass(frozen=True, slots=True)
class Covered:
    """How much of one source file of the kernel a run has executed."""

    source: str
    lines: int
    lines_percent: float
    branches: int
    branches_percent: float

    def __str__(self) -> str:
        return (
            f"{self.source}: {self.lines_percent:.1f} % of {self.lines} lines,"
            f" {self.branches_percent:.1f} % of {self.branches} branches"
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was read; ``place`` is its directory as a user would name it.

    ``options`` are those of its kernel's configuration, empty where that is not at hand.
    """

    record: RunRecord
    place: str = ""
    covered: tuple[Covered, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def read_runs(named: Iterable[Path]) -> list[Run]:
    """All runs that these directories hold or stand above, each once.

    Below a directory of several kernels a self-check is left out; one that was named is refused,
    since it is about no kernel.  Raises ReportError.
    """
    found: dict[Path, Run] = {}
    for path in named:
        runs = {file.resolve(): read_run(file) for file in find_runs(path)}
        kernels = {file: run for file, run in runs.items() if not run.record.head.self_check}
        if not kernels:
            what = "is a self-check, which is about no kernel"
            raise ReportError(path, what, "name another run")
        found = {**kernels, **found}
    return list(found.values())


def find_runs(path: Path) -> list[Path]:
    """Every results.json meant by ``path``: its own, else one of each directory below it.

    Of a directory with ``latest`` it is that one, as for `find_run`.  Raises ReportError.
    """
    if path.is_dir() and not any(
        (each / results_json.NAME).is_file() for each in (path, path / LATEST)
    ):
        below = sorted({*_below(path)})
        if below:
            return below
    return [find_run(path)]


def _below(path: Path) -> Iterator[Path]:
    for directory in path.iterdir():
        latest = directory / LATEST / results_json.NAME
        own = directory / results_json.NAME
        if own.is_file() or latest.is_file():
            yield own if own.is_file() else latest


def read_run(file: Path) -> Run:
    """The run whose results.json this is.  Raises ReportError."""
    return Run(results_json.read_results(file), str(file.parent), read_covered(file.parent))


def read_covered(directory: Path) -> tuple[Covered, ...]:
    """What coverage.json of a run says; nothing where there is none.  Raises ReportError."""
    path = directory / COVERAGE
    if not path.exists():
        return ()
    data = read_json(path)
    if not isinstance(data, list):
        raise ReportError.malformed(path, "is no coverage: expected a list")
    try:
        return tuple(decode(Covered, each, f"file {n}") for n, each in enumerate(data, 1))
    except SchemaError as error:
        raise ReportError.malformed(path, f"is no coverage: {error}") from error
