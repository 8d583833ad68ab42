"""Line and branch coverage of the kernel, with flavour gcov.

A guest has the counters of each object in debugfs.  gcov reads them together with the compiler's
notes, which are kept with the image.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from conformance.results.stored_runs import Covered
from host.programs import ProgramFailed, output_of
from host.temporary_directories import scratch
from kernels.errors import HostTrouble

# Below it is the path of each object when it was compiled.
_DEBUGFS = "/sys/kernel/debug/gcov"
_GCOV_S = 60.0
Place = TypeVar("Place", int, tuple[int, int])
NOTES, COUNTERS = ".gcno", ".gcda"


class NoCoverage(HostTrouble):
    """The counters of a kernel cannot be read here."""


class CountedObject(Struct, frozen=True):
    """An object of the kernel with counters.

    ``source`` is its file in the kernel tree, ``notes`` the compiler's notes about it, ``counters``
    the path of its counters in a guest.
    """

    source: str
    notes: Path
    counters: str

    @classmethod
    def of(cls, notes: Path, kept: Path) -> CountedObject:
        """The object of a notes file below the directory ``kept``.  Raises NoCoverage."""
        report = _gcov(notes)
        name = notes.relative_to(kept)
        place = Path(report["current_working_directory"]) / name.with_suffix(COUNTERS)
        return cls(str(name.with_suffix(".c")), notes, f"{_DEBUGFS}{place}")


class Coverage(Struct, frozen=True):
    """Execution counts of the lines and branches of one file.

    A branch is identified by its line and its number there.
    """

    source: str
    lines: Mapping[int, int]
    branches: Mapping[tuple[int, int], int]

    @property
    def covered(self) -> Covered:
        """How much of both was executed."""
        lines, branches = self.lines, self.branches
        return Covered(self.source, len(lines), _percent(lines), len(branches), _percent(branches))

    @property
    def missed(self) -> list[int]:
        """Numbers of the lines that were not executed."""
        return _missed(self.lines)

    def __str__(self) -> str:
        return str(self.covered)

    def to_json(self) -> dict[str, object]:
        """For programs."""
        missed = {"missed_lines": self.missed, "missed_branches": _missed(self.branches)}
        return {**asdict(self.covered), **missed}


def coverage(counted: CountedObject, counters: Iterable[Path]) -> Coverage:
    """Coverage by the counters of several guests.  Raises NoCoverage."""
    # Notes alone give every line with code, none executed.
    lines: Counter[int] = Counter()
    branches: Counter[tuple[int, int]] = Counter()
    for file in (None, *counters):
        for line in _lines(_gcov(counted.notes, file), counted.source):
            number = int(line["line_number"])
            lines[number] += int(line["count"])
            for place, branch in enumerate(line["branches"]):
                branches[number, place] += int(branch["count"])
    return Coverage(counted.source, dict(lines), dict(branches))


def _lines(report: dict[str, Any], source: str) -> list[dict[str, Any]]:
    """The lines of the source file itself; headers have lines in every object."""
    found = [each for each in report["files"] if each["file"].endswith(f"/{source}")]
    return [line for each in found for line in each["lines"]]


def _gcov(notes: Path, counters: Path | None = None) -> dict[str, Any]:
    """The report of gcov for an object; without counters, nothing was executed."""
    with scratch() as directory:
        # gcov expects both files in one directory.
        shutil.copyfile(notes, directory / notes.name)
        if counters is not None:
            shutil.copyfile(counters, directory / notes.with_suffix(COUNTERS).name)
        try:
            command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", notes.name]
            report = json.loads(output_of(command, _GCOV_S, cwd=directory))
        except (ProgramFailed, ValueError) as error:
            raise NoCoverage(
                f"gcov cannot read {counters or notes}: {error}",
                "install the gcov of the compiler that built this kernel",
            ) from error
        assert isinstance(report, dict)
        return report


def _missed(counts: Mapping[Place, int]) -> list[Place]:
    return sorted(place for place, count in counts.items() if not count)


def _percent(counts: Mapping[Any, int]) -> float:
    run = [bool(count) for count in counts.values()]
    return round(100 * sum(run) / len(run), 2) if run else 0.0
