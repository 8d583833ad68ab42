"""Read a journal: what ended, what was running, and how the run ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from conformance.results.case_result import CaseResult
from conformance.results.contradiction import Contradiction
from conformance.results.files import reading
from conformance.results.journal import BEGINNING, CHECK, seal
from conformance.results.json_codec import SchemaError, decode
from conformance.results.run import Functions, RunHead
from conformance.results.shard import Shard
from host.files import open_regular

INTERRUPTED = "interrupted"
"""The note of a run that the user interrupted."""

_NO_ENTRY = "is not a journal entry"

# An int may be too large for a float; no run is longer than this.
_LONGEST_S = 1e9


class _Plan(Struct, frozen=True):
    functions: Functions | None = None
    shards: tuple[Shard, ...] = ()


class Running(NamedTuple):
    """A case that started."""

    id: str
    tier: str


class Journal(Struct):
    """The contents of a journal.

    ``results`` are the final results by id, in the order in which the cases ended; ids in ``extra``
    are not selected cases.  ``attempts`` were followed by a second run.  ``selected`` is None
    before the selection was known.  ``deaths`` counts how often the run or its worker process died
    during a case.  ``parts`` counts starts and resumes, ``elapsed_s`` is their total time.
    ``ended`` is false if the run was killed, ``torn`` true if an incomplete last line was ignored.
    """

    head: RunHead | None = None
    results: dict[str, CaseResult] = field(default_factory=dict)
    extra: set[str] = field(default_factory=set)
    attempts: list[CaseResult] = field(default_factory=list)
    contradictions: dict[str, Contradiction] = field(default_factory=dict)
    selected: int | None = None
    functions: Functions | None = None
    shards: tuple[Shard, ...] = ()
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
        """The number of selected cases that ended."""
        return len(self.results) - len(self.extra)


def read_journal(path: Path) -> Journal:
    """Read a journal; a torn last line is ignored.

    Raises ReportError, naming the line, for content that no run writes: an invalid or changed line,
    or one that contradicts earlier lines.
    """
    replay = _Replay()
    with reading(path):
        with open_regular(path) as file:
            data = file.read()
        for where, entry in _entries(data):
            replay.take(where, entry)
    journal = replay.finish()
    journal.torn = not data.endswith(b"\n") and bool(data)
    return journal


def read_head(path: Path) -> RunHead | None:
    """The head of a journal only; None if it is empty or missing.  Raises ReportError."""
    with reading(path), suppress(FileNotFoundError):
        with open_regular(path) as file:
            first = file.readline()
        for where, entry in _entries(first):
            return _head(where, entry)
    return None


def _entries(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The complete lines, with their chain of digests verified.  Raises SchemaError."""
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
            raise SchemaError(where, "has no digest: written by an older uevt")
        before = seal(body + b"}", before)
        if found != before + b'"}':
            raise SchemaError(where, "was changed or moved")
        yield where, entry
    # After a power cut a file can end in zeros.
    torn = rest.rstrip(b"\0")[: len(BEGINNING)]
    if torn != BEGINNING[: len(torn)]:
        raise SchemaError(f"line {len(lines) + 1}", _NO_ENTRY)


def _head(where: str, entry: dict[str, Any]) -> RunHead:
    if entry["event"] != "run":
        raise SchemaError(where, "is not a run entry, which a journal begins with")
    return decode(RunHead, entry, where)


class _Replay:
    """Build a Journal entry by entry.  Methods raise SchemaError."""

    def __init__(self) -> None:
        self._journal = Journal()
        # Cases that started and have not ended.
        self._running: dict[str, Running] = {}
        self._part_s = 0.0
        self._where = ""

    def take(self, where: str, entry: dict[str, Any]) -> None:
        """Add the next entry."""
        self._where, journal = where, self._journal
        if journal.head is None or entry["event"] == "run":
            self._begin(_head(where, entry))
        elif journal.ended:
            raise self._wrong("follows the end of the run")
        match entry:
            case {"event": "run"}:
                pass
            case {"event": "plan", "selected": int(selected)}:
                if journal.selected not in (None, selected):
                    raise self._wrong(f"{selected} cases are selected, {journal.selected} were")
                journal.selected = selected
                plan = decode(_Plan, entry, where)
                journal.functions = plan.functions or journal.functions
                journal.shards = plan.shards
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
            case {"event": "extra", "case": case}:
                result = CaseResult.from_json(case, f"{where}.case")
                if result.id not in journal.extra:
                    self._require_open(result.id)
                journal.extra.add(result.id)
                journal.results[result.id] = result
            case {"event": "contradiction", "contradiction": found}:
                contradiction = decode(Contradiction, found, f"{where}.contradiction")
                journal.contradictions[contradiction.switch] = contradiction
            case {"event": "end", "note": str(note)}:
                self._ended(note)
            case _:
                raise self._wrong(_NO_ENTRY)
        elapsed = entry.get("s", -1)
        if type(elapsed) not in (int, float) or not 0 <= elapsed < _LONGEST_S:
            raise self._wrong("has no time")
        self._part_s = float(elapsed)

    def finish(self) -> Journal:
        """The journal after the last entry."""
        if not self._journal.ended:
            self._died(*self._running)
        self._journal.elapsed_s += self._part_s
        return self._journal

    def _begin(self, head: RunHead) -> None:
        journal, first = self._journal, self._journal.head
        if first is not None and replace(head, host=first.host) != first:
            raise self._wrong("continues another run than the one before")
        if not journal.ended:
            self._died(*self._running)
        self._running.clear()
        journal.elapsed_s += self._part_s
        journal.head, journal.ended, journal.note = head, False, ""
        journal.parts += 1

    def _end(self, result: CaseResult) -> None:
        self._require_open(result.id)
        if result.id in self._journal.extra:
            raise self._wrong(f"{result.id} is not a selected case")
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
            raise self._wrong(f"{name} has already ended")

    def _died(self, *names: str) -> None:
        self._journal.deaths.update(self._running[name] for name in names if name in self._running)

    def _wrong(self, what: str) -> SchemaError:
        return SchemaError(self._where, what)
