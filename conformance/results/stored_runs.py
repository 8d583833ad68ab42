"""Stored runs: find the directories, read them, and order their kernels.

``uevt compare``, ``history``, ``report`` and ``export`` share this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from conformance.results.directory import COVERAGE, LATEST
from conformance.results.errors import ReportError
from conformance.results.files import read_json, reading
from conformance.results.json_codec import decode
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord

# results/matrix/6.12/20261120T174400Z/results.json, below results.
_DEPTH = 3
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-rc(\d+))?")
_NO_CANDIDATE = 1 << 30


class Covered(Struct, frozen=True):
    """How much of one kernel source file a run executed."""

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


class Run(Struct, frozen=True):
    """A run that was read; ``place`` is its directory as the user named it.

    ``options`` are those of its kernel's configuration, empty if unknown.
    """

    record: RunRecord
    place: str = ""
    covered: tuple[Covered, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def find_run(path: Path) -> Path:
    """The results.json of a run: in the directory ``path``, or the only one below it.

    ``latest`` is preferred to other runs.  Raises ReportError.
    """
    if path.is_file():
        return path
    if own := _own(path):
        return own
    found = sorted(path.glob(f"*/{NAME}")) + sorted(path.glob(f"*/{LATEST}/{NAME}"))
    if len(found) == 1:
        return found[0]
    if not found:
        what = "is neither a directory nor a regular file" if path.exists() else "does not exist"
        what = "has no results.json" if path.is_dir() else what
        raise ReportError(path, what, "name a directory of results")
    names = ", ".join(str(each.parent.relative_to(path)) for each in found[:5])
    raise ReportError(path, f"has the results of {len(found)} runs", f"name one: {names}")


def latest_runs(path: Path) -> list[Path]:
    """The results.json of ``path``, else the latest one of each directory in it.

    Raises ReportError.
    """
    alone = not path.is_dir() or _own(path)
    below = () if alone else sorted(own for each in path.iterdir() if (own := _own(each)))
    return list(below) or [find_run(path)]


def runs_below(directory: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """The results.json of every run in a directory, a few levels deep.

    Symbolic links are not followed; an unreadable directory counts as empty.
    """
    if (directory / NAME).is_file():
        yield directory / NAME
        return
    if depth == 0:
        return
    try:
        with os.scandir(directory) as entries:
            names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        yield from runs_below(directory / name, depth - 1)


def read_runs(paths: Iterable[Path]) -> list[Run]:
    """All runs in these directories or directly below, each once.

    Self-checks below a directory are left out.  Raises ReportError, also for a directory that has
    nothing but a self-check.
    """
    found: dict[Path, Run] = {}
    for path in paths:
        runs = {file.resolve(): read_run(file) for file in latest_runs(path)}
        kernels = {file: run for file, run in runs.items() if not run.record.head.self_check}
        if not kernels:
            require_kernel(next(iter(runs.values())).record, path)
        found = {**kernels, **found}
    return list(found.values())


def read_run(file: Path) -> Run:
    """The run of a results.json.  Raises ReportError."""
    return Run(read_results(file), str(file.parent), read_covered(file.parent))


def read_covered(directory: Path) -> tuple[Covered, ...]:
    """The contents of coverage.json; empty if there is none.  Raises ReportError."""
    path = directory / COVERAGE
    if not path.exists():
        return ()
    data = read_json(path)
    if not isinstance(data, list):
        raise ReportError.malformed(path, "is not a coverage file: expected a list")
    with reading(path, "is not a coverage file: "):
        return tuple(decode(Covered, each, f"file {n}") for n, each in enumerate(data, 1))


def require_kernel(record: RunRecord, path: Path) -> None:
    """Raise ReportError for a self-check, which judged no kernel."""
    if record.head.self_check:
        raise ReportError(path, "is a self-check, which judged no kernel", "name another run")


def release_key(release: str) -> tuple[int, ...]:
    """Sorts releases: 6.9 before 6.12, 6.13-rc2 before 6.13; other texts come first."""
    found = _RELEASE.match(release)
    if found is None:
        return ()
    major, minor, sublevel, candidate = (found[n] for n in range(1, 5))
    rc = int(candidate) if candidate else _NO_CANDIDATE
    # 6.13.0-rc2 and 6.13-rc2 are the same.
    return int(major), int(minor), int(sublevel or 0), rc


def _own(path: Path) -> Path | None:
    """The results.json of a directory, its own or that of ``latest``."""
    candidates = (path / NAME, path / LATEST / NAME)
    return next((each for each in candidates if each.is_file()), None)
