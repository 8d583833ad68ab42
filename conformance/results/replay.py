"""What a journal says of its run: what has ended, what was running, how it ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from conformance.results.case_result import CaseResult, Contradiction
from conformance.results.errors import ReportError
from conformance.results.journal import BEGINNING, CHECK, seal
from conformance.results.json_codec import SchemaError, decode
from conformance.results.run import RunHead

INTERRUPTED = "interrupted"
"""The note of a run that somebody ended who was asked for a report of what was done so far."""

_NO_ENTRY = "is no entry of a journal"

# No run is longer; an int may be too large for a float.
_LONGEST_S = 1e9


class Running(NamedTuple):
    """A case that began."""

    id: str
    tier: str


@dataclass(slots=True)
class Journal:
    """What a journal says.

    ``results`` are the results that stand, by id in the order in which they ended; those of
    ids in ``beside`` are of no selected case.  ``attempts`` were followed by a re-run.
    ``selected`` counts the selected cases, None before that was known.  ``deaths`` counts how
    often a case was running when the run, or the process that ran it, ended without a word.
    ``parts`` is how often the run began or went on, ``elapsed_s`` what that took together.
    ``ended`` is false when it was cut off, ``torn`` when an incomplete last line was left out.
    """

    head: RunHead | None = None
    results: dict[str, CaseResult] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)
    attempts: list[CaseResult] = field(default_factory=list)
    contradictions: dict[str, Contradiction] = field(default_factory=dict)
    selected: int | None = None
    deaths: Counter[Running] = field(default_factory=Counter)
    parts: int = 0
    elapsed_s: float = 0.0
    ended: bool = False
    note: str = ""
    torn: bool = False

    @property
    def complete(self) -> bool:
        """Whether every selected case has ended."""
        return self.selected is not None and self.count >= self.selected

    @property
    def count(self) -> int:
        """How many selected cases have ended."""
        return len(self.results) - len(self.beside)


def read_journal(path: Path) -> Journal:
    """Everything ``path`` holds, its torn last line left out.

    Raises ReportError, naming the line, for what no run can have written: a line that is no
    entry, was changed, or contradicts those before it.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReportError.unreadable(path, error) from error
    replay = _Replay()
    try:
        for where, entry in _entries(data):
            replay.take(where, entry)
    except SchemaError as error:
        raise ReportError.malformed(path, str(error)) from error
    journal = replay.finish()
    journal.torn = not data.endswith(b"\n") and bool(data)
    return journal


def read_head(path: Path) -> RunHead | None:
    """The head of a journal alone; None where nothing has begun.  Raises ReportError."""
    try:
        with path.open("rb") as file:
            first = file.readline()
        for where, entry in _entries(first):
            return _head(where, entry)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ReportError.unreadable(path, error) from error
    except SchemaError as error:
        raise ReportError.malformed(path, str(error)) from error
    return None


def _entries(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The complete lines, each behind the one it was written behind.  Raises SchemaError."""
    before = b""
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        where = f"line {number}"
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SchemaError(where, str(error)) from error
        if not isinstance(entry, dict) or not line.startswith(BEGINNING):
            raise SchemaError(where, _NO_ENTRY)
        body, mark, found = line.rpartition(CHECK)
        if not mark:
            raise SchemaError(where, "has no digest, which an older uevt did not write")
        before = seal(body + b"}", before)
        if found != before + b'"}':
            raise SchemaError(where, "was changed, or is not where it was written")
        yield where, entry
    # A host that lost power can leave zeros where it had no time to write.
    torn = rest.rstrip(b"\0")[: len(BEGINNING)]
    if torn != BEGINNING[: len(torn)]:
        raise SchemaError(f"line {len(lines) + 1}", _NO_ENTRY)


def _head(where: str, entry: dict[str, Any]) -> RunHead:
    if entry["event"] != "run":
        raise SchemaError(where, "a journal begins with its run")
    return decode(RunHead, entry, where)


class _Replay:
    """One journal, entry by entry.  Methods raise SchemaError."""

    def __init__(self) -> None:
        self._journal = Journal()
        # Those that began and have not ended.
        self._running: dict[str, Running] = {}
        self._part_s = 0.0
        self._where = ""

    def take(self, where: str, entry: dict[str, Any]) -> None:
        """One more thing happened."""
        self._where, journal = where, self._journal
        if journal.head is None or entry["event"] == "run":
            self._begin(_head(where, entry))
        elif journal.ended:
            raise self._wrong("comes after the end of the run")
        match entry:
            case {"event": "run"}:
                pass
            case {"event": "plan", "selected": int(selected)}:
                if journal.selected not in (None, selected):
                    raise self._wrong(f"{selected} cases are selected, {journal.selected} were")
                journal.selected = selected
            case {"event": "guests", "how": str(how)}:
                assert journal.head is not None
                journal.head.host["guests"] = how
            case {"event": "running", "id": str(name), "tier": str(tier)}:
                self._require_open(name)
                self._died(name)
                self._running[name] = Running(name, tier)
            case {"event": "attempt", "case": case}:
                attempt = CaseResult.from_json(case, f"{where}.case")
                self._require_open(attempt.id)
                journal.attempts.append(attempt)
            case {"event": "case", "case": case}:
                self._end(CaseResult.from_json(case, f"{where}.case"))
            case {"event": "beside", "case": case}:
                result = CaseResult.from_json(case, f"{where}.case")
                if result.id not in journal.beside:
                    self._require_open(result.id)
                journal.beside.add(result.id)
                journal.results[result.id] = result
            case {"event": "contradiction", "contradiction": found}:
                contradiction = decode(Contradiction, found, f"{where}.contradiction")
                journal.contradictions[contradiction.switch] = contradiction
            case {"event": "end", "note": str(note)}:
                self._ended(note)
            case _:
                raise self._wrong(_NO_ENTRY)
        elapsed = entry.get("s")
        if not isinstance(elapsed, int | float) or isinstance(elapsed, bool):
            raise self._wrong("does not say when it was")
        if not 0 <= elapsed < _LONGEST_S:
            raise self._wrong("does not say when it was")
        self._part_s = float(elapsed)

    def finish(self) -> Journal:
        """All of it."""
        if not self._journal.ended:
            self._died(*self._running)
        self._journal.elapsed_s += self._part_s
        return self._journal

    def _begin(self, head: RunHead) -> None:
        journal, first = self._journal, self._journal.head
        if first is not None and replace(head, host=first.host) != first:
            raise self._wrong("goes on with another run than the one before it")
        if not journal.ended:
            self._died(*self._running)
        self._running.clear()
        journal.elapsed_s += self._part_s
        journal.head, journal.ended, journal.note = head, False, ""
        journal.parts += 1

    def _end(self, result: CaseResult) -> None:
        self._require_open(result.id)
        if result.id in self._journal.beside:
            raise self._wrong(f"{result.id} is no selected case")
        self._running.pop(result.id, None)
        self._journal.results[result.id] = result
        if self._journal.complete and self._journal.count != self._journal.selected:
            raise self._wrong(f"more cases ended than the {self._journal.selected} selected")

    def _ended(self, note: str) -> None:
        if note != INTERRUPTED:
            self._died(*self._running)
        self._running.clear()
        self._journal.ended, self._journal.note = True, note

    def _require_open(self, name: str) -> None:
        if name in self._journal.results:
            raise self._wrong(f"{name} had ended before")

    def _died(self, *names: str) -> None:
        self._journal.deaths.update(self._running[name] for name in names if name in self._running)

    def _wrong(self, what: str) -> SchemaError:
        return SchemaError(self._where, what)
