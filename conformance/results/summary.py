"""A run in brief, to be kept in the repository: outcomes, and which program showed each.

``python -m conformance.results.summary [NAME=]RUN… DIRECTORY`` writes one file per kernel;
RUN is a directory with results.json, and NAME what to call an image of one's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.results.case_result import RunVerdict
from conformance.results.errors import ReportError
from conformance.results.files import read_json
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord
from host.files import write_atomically

# Hexadecimal digits of a program's digest that are kept: enough to see a change.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Shown:
    """What one case showed, by a program with this digest."""

    outcome: str
    digest: str


@dataclass(frozen=True, slots=True)
class Summary:
    """One run: which kernel by which contract, the suite's revision, and every case."""

    kernel: str
    release: str
    profile: str
    source: str
    suite: str
    verdict: str
    cases: dict[str, Shown]

    @classmethod
    def of(cls, record: RunRecord) -> Summary:
        """The brief of a run."""
        kernel = record.head.kernel
        return cls(
            kernel=kernel.id,
            release=kernel.release,
            profile=kernel.profile,
            source=kernel.source or "",
            suite=record.head.suite,
            verdict=record.verdict.value,
            cases={
                case.id: Shown(case.outcome.value, brief(case.digest or ""))
                for case in sorted(record.cases, key=lambda case: case.id)
            },
        )

    def to_text(self) -> str:
        """One line per case, so that a diff shows what changed."""
        head: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("kernel", "release", "profile", "source", "suite", "verdict")
        }
        lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        cases = ",\n".join(
            f"  {json.dumps(id)}: {json.dumps([shown.outcome, shown.digest])}"
            for id, shown in self.cases.items()
        )
        return "{\n" + ",\n".join([*lines, ' "cases": {\n' + cases + "\n }"]) + "\n}\n"

    @classmethod
    def read(cls, path: Path) -> Summary:
        """Read what ``to_text`` wrote.  Raises ReportError."""
        data = read_json(path)
        try:
            cases = {id: Shown(*shown) for id, shown in data.pop("cases").items()}
            return cls(**data, cases=cases)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ReportError.malformed(path, f"is no summary: {error}") from error


def brief(digest: str) -> str:
    """A digest as a summary keeps it."""
    return digest[:_DIGITS]


def main(arguments: Sequence[str]) -> int:
    """Write the summaries of runs; 2 when there is nothing to write or to read."""
    if len(arguments) < 2:
        print(
            "usage: python -m conformance.results.summary [NAME=]RUN... DIRECTORY",
            file=sys.stderr,
        )
        return 2
    *runs, last = arguments
    directory = Path(last)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        for text in runs:
            name, _, path = text.rpartition("=")
            run = Path(path)
            record = read_results(run / NAME)
            if record.head.self_check or record.verdict is RunVerdict.ERROR:
                what = f"says nothing about a kernel: {record.trouble or 'a self-check'}"
                raise ReportError(run, what, "name a run that ended with a verdict")
            summary = Summary.of(record)
            summary = replace(summary, kernel=name or summary.kernel)
            target = directory / f"{summary.kernel}.json"
            write_atomically(target, summary.to_text())
            print(f"{target}: {summary.verdict}, {len(summary.cases)} cases")
    except ReportError as error:
        print(f"uevt: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
