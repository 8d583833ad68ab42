"""The published record of a run: one line per case with outcome and program digest.

``python -m conformance.results.summary [NAME=]RUN… DIRECTORY`` writes one file per kernel; RUN is
a directory with results.json, and NAME replaces the kernel's id.  The files in docs/results are a
record of what was measured, not a gate.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from conformance.results.errors import ReportError
from conformance.results.files import read_json
from conformance.results.outcome import RunVerdict
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord
from host.files import write_atomically

# Hexadecimal digits of a digest that are kept: enough to see a change.
_DIGITS = 12


class RecordedCase(Struct, frozen=True):
    """Outcome of a case and digest of the program that ran."""

    outcome: str
    digest: str


class Summary(Struct, frozen=True):
    """One run: kernel, ABI it was judged by, revision of the suite, and all cases by id."""

    kernel: str
    release: str
    profile: str
    source: str
    suite: str
    verdict: str
    cases: dict[str, RecordedCase]

    @classmethod
    def of(cls, record: RunRecord) -> Summary:
        """The summary of a run."""
        kernel = record.head.kernel
        return cls(
            kernel=kernel.id,
            release=kernel.release,
            profile=kernel.profile,
            source=kernel.source or "",
            suite=record.head.suite,
            verdict=record.verdict.value,
            cases={
                case.id: RecordedCase(case.outcome.value, short_digest(case.digest or ""))
                for case in sorted(record.cases, key=lambda case: case.id)
            },
        )

    def to_text(self) -> str:
        """One line per case, so that a diff shows what changed."""
        names = ("kernel", "release", "profile", "source", "suite", "verdict")
        lines = [f" {json.dumps(name)}: {json.dumps(getattr(self, name))}" for name in names]
        cases = ",\n".join(
            f"  {json.dumps(id)}: {json.dumps([case.outcome, case.digest])}"
            for id, case in self.cases.items()
        )
        return "{\n" + ",\n".join([*lines, ' "cases": {\n' + cases + "\n }"]) + "\n}\n"

    @classmethod
    def read(cls, path: Path) -> Summary:
        """Read what ``to_text`` wrote.  Raises ReportError."""
        data = read_json(path)
        try:
            cases = {id: RecordedCase(*case) for id, case in data.pop("cases").items()}
            return cls(**data, cases=cases)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ReportError.malformed(path, f"is not a summary: {error}") from error


def short_digest(digest: str) -> str:
    """A digest as a summary keeps it."""
    return digest[:_DIGITS]


def main(arguments: Sequence[str]) -> int:
    """Write the summaries of runs; 2 for a usage error or an unreadable run."""
    if len(arguments) < 2:
        usage = "usage: python -m conformance.results.summary [NAME=]RUN... DIRECTORY"
        print(usage, file=sys.stderr)
        return 2
    *runs, last = arguments
    directory = Path(last)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        for run in runs:
            summary = _summary(run)
            target = directory / f"{summary.kernel}.json"
            write_atomically(target, summary.to_text())
            print(f"{target}: {summary.verdict}, {len(summary.cases)} cases")
    except ReportError as error:
        print(f"uevt: {error}", file=sys.stderr)
        return 2
    return 0


def _summary(argument: str) -> Summary:
    """The summary of ``[NAME=]RUN``.  Raises ReportError."""
    name, _, path = argument.rpartition("=")
    record = read_results(Path(path) / NAME)
    if record.head.self_check or record.verdict is RunVerdict.ERROR:
        what = f"has no verdict about a kernel: {record.trouble or 'a self-check'}"
        raise ReportError(Path(path), what, "name a run that ended with a verdict")
    summary = Summary.of(record)
    return replace(summary, kernel=name or summary.kernel)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
