"""The index of a directory of runs: their outcomes in an SQLite file.

Reading a results.json takes milliseconds, and a directory may have a thousand.  The index knows
each by path, size and mtime; changed files are read again, removed ones dropped.  It can be
deleted at any time.  If it is locked for too long or cannot be written, a copy in memory is used.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from conformance.results.errors import ReportError
from conformance.results.json_codec import decode, encode
from conformance.results.outcome import Outcome, RunVerdict
from conformance.results.run import RunHead
from conformance.results.stored_outcomes import CaseOutcome, Program, RunOutcomes, read_outcomes
from conformance.results.stored_runs import runs_below

NAME = ".history.sqlite3"
# An index of another layout is rebuilt.
_LAYOUT = 2
# Runs of one transaction: an interrupted refresh keeps the earlier ones.
_BATCH = 25
_PATIENCE_S = 10.0
# Characters of a reason; results.json has all.
_REASON = 160
_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    path TEXT PRIMARY KEY, changed INTEGER, size INTEGER, trouble TEXT,
    head TEXT, verdict TEXT, passed INTEGER, other TEXT
);
-- Programs of the cases that passed: most runs of one revision of the suite share them.
CREATE TABLE IF NOT EXISTS passed (id INTEGER PRIMARY KEY, programs BLOB UNIQUE);
"""


def opened(directory: Path) -> sqlite3.Connection:
    """Open the index of a directory; in memory if it cannot be written."""
    file = directory / NAME
    for _ in range(2):
        try:
            return _on_disk(file)
        except sqlite3.OperationalError:
            break
        except sqlite3.DatabaseError:
            # Damaged, or of another layout: rebuild it.
            with suppress(OSError):
                file.unlink()
    return copied(directory)


def copied(directory: Path) -> sqlite3.Connection:
    """A private copy of the index in memory; empty if the file is unreadable."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with suppress(sqlite3.DatabaseError):
        uri = f"{(directory / NAME).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=1)) as disk:
            if _layout(disk) == _LAYOUT:
                _check(disk)
                disk.backup(connection)
    connection.executescript(_TABLES)
    return connection


def refresh(
    connection: sqlite3.Connection, directory: Path, progress: Callable[[int], None]
) -> None:
    """Bring the index up to date; ``progress`` gets the number of files to read.

    Raises sqlite3.DatabaseError.
    """
    files = {_text(str(file.relative_to(directory))): file for file in runs_below(directory)}
    found = {}
    for path, file in files.items():
        with suppress(OSError):
            status = file.stat()
            found[path] = (status.st_mtime_ns, status.st_size)
    rows = connection.execute("SELECT path, changed, size FROM runs")
    known = {path: (changed, size) for path, changed, size in rows}
    gone = [path for path in known if path not in found]
    stale = [path for path, stamp in found.items() if known.get(path) != stamp]
    if stale:
        progress(len(stale))
    for start in range(0, len(stale), _BATCH):
        batch = stale[start : start + _BATCH]
        # Read before taking the lock, which is then held for milliseconds.
        read = {path: _read(files[path]) for path in batch}
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for path in batch:
                _forget(connection, path)
                _add(connection, path, found[path], read[path])
    if gone:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for path in gone:
                _forget(connection, path)


def unreadable(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """The unreadable results.json files, and why."""
    return list(connection.execute("SELECT path, trouble FROM runs WHERE head IS NULL"))


def runs(connection: sqlite3.Connection) -> Iterator[RunOutcomes]:
    """The outcomes of all runs; ``path`` is the directory, relative to the store."""
    passed = {
        id: {
            case: CaseOutcome(Outcome.PASS, Program(*each))
            for case, each in json.loads(zlib.decompress(content)).items()
        }
        for id, content in connection.execute("SELECT id, programs FROM passed")
    }
    query = "SELECT path, head, verdict, passed, other FROM runs WHERE head IS NOT NULL"
    for path, head, verdict, number, other in connection.execute(query):
        failed = {
            case: CaseOutcome(Outcome(outcome), Program(*program), reason)
            for case, (outcome, program, reason) in json.loads(other).items()
        }
        yield RunOutcomes(
            Path(path).parent,
            decode(RunHead, json.loads(head), path),
            RunVerdict(verdict) if verdict else None,
            ChainMap(failed, passed[number]),
        )


def _on_disk(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_PATIENCE_S, isolation_level=None)
    try:
        layout = _layout(connection)
        if layout not in (0, _LAYOUT):
            raise sqlite3.DatabaseError(f"layout {layout}")
        if layout == 0:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_LAYOUT}")
            connection.execute("COMMIT")
        _check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError for a damaged file."""
    (check,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
    if check != "ok" or connection.execute(tables).fetchone() != (_TABLES.count("TABLE IF"),):
        raise sqlite3.DatabaseError(check)


def _layout(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _text(text: str) -> str:
    """Text for SQLite, which refuses surrogates; file names and JSON may have some."""
    return text.encode("utf-8", "backslashreplace").decode()


def _read(path: Path) -> RunOutcomes | str:
    """The outcomes of a run, or why it cannot be read."""
    try:
        return read_outcomes(path)
    except ReportError as error:
        return str(error).removeprefix(f"{path}: ")


def _forget(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("DELETE FROM runs WHERE path = ?", (path,))
    connection.execute("DELETE FROM passed WHERE id NOT IN (SELECT passed FROM runs)")


def _add(
    connection: sqlite3.Connection, path: str, stamp: tuple[int, int], read: RunOutcomes | str
) -> None:
    row: tuple[object, ...]
    if isinstance(read, str):
        row = (_text(read), *[None] * 4)
    else:
        passed, other = {}, {}
        for case, each in sorted(read.cases.items()):
            program = (each.program.digest, each.program.course)
            if each.outcome is Outcome.PASS:
                passed[case] = program
            else:
                other[case] = (each.outcome.value, program, each.reason[:_REASON])
        head, number = json.dumps(encode(read.head)), _number(connection, passed)
        row = ("", head, read.verdict, number, json.dumps(other))
    connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (path, *stamp, *row))


def _number(connection: sqlite3.Connection, passed: Mapping[str, tuple[str, str]]) -> int:
    """The number of these programs, added if missing."""
    content = (zlib.compress(json.dumps(passed).encode(), 1),)
    connection.execute("INSERT OR IGNORE INTO passed VALUES (NULL, ?)", content)
    (number,) = connection.execute("SELECT id FROM passed WHERE programs = ?", content).fetchone()
    return int(number)
