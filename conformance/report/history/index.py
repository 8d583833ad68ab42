"""The index of a directory of runs: their outcomes in an SQLite file.

Reading a results.json takes milliseconds, and a directory may have a thousand.  The index knows
each by path, size and mtime; changed files are read again, removed ones dropped.  It can be
deleted at any time.  If it is locked for too long or cannot be written, a copy in memory is used.
"""

from __future__ import annotations

import sqlite3
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from conformance.results.case_result import Outcome
from conformance.results.errors import ReportError
from conformance.results.outcomes import CaseOutcome, Program, RunOutcomes, read_outcomes
from conformance.results.stored_runs import runs_below

NAME = ".history.sqlite3"
# An index of another layout is rebuilt.
_LAYOUT = 1
# Runs of one transaction: an interrupted refresh keeps the earlier ones.
_BATCH = 25
_PATIENCE_S = 10.0
# Characters of a reason; results.json has all.
_REASON = 160
_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY, path TEXT UNIQUE, changed INTEGER, size INTEGER, trouble TEXT,
    kernel TEXT, release TEXT, profile TEXT, variant TEXT, config TEXT, source TEXT, build TEXT,
    started TEXT, suite TEXT, accel TEXT, verdict TEXT, passed INTEGER
);
CREATE TABLE IF NOT EXISTS cases (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE IF NOT EXISTS programs (
    id INTEGER PRIMARY KEY, digest TEXT, course TEXT, UNIQUE (digest, course)
);
-- Cases that passed and their programs: runs of one suite have most of it in common.
CREATE TABLE IF NOT EXISTS passed (id INTEGER PRIMARY KEY, content BLOB UNIQUE);
-- All other cases.
CREATE TABLE IF NOT EXISTS shown (
    run INTEGER, name INTEGER, outcome TEXT, program INTEGER, reason TEXT,
    PRIMARY KEY (name, run)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_run ON shown (run);
"""
_COLUMNS = 16


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
    known = _known(connection)
    gone = [path for path in known if path not in found]
    stale = [path for path, stamp in found.items() if known.get(path) != stamp]
    if stale:
        progress(len(stale))
    rest = iter(stale)
    while batch := list(islice(rest, _BATCH)):
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


def programs_of(content: bytes) -> Mapping[int, int]:
    """Numbers of the cases that passed to those of their programs."""
    numbers = array("I", zlib.decompress(content))
    half = len(numbers) // 2
    return dict(zip(numbers[:half], numbers[half:], strict=True))


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


def _known(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    rows = connection.execute("SELECT path, changed, size FROM runs")
    return {path: (changed, size) for path, changed, size in rows}


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
    row = connection.execute("SELECT run FROM runs WHERE path = ?", (path,)).fetchone()
    if row is not None:
        connection.execute("DELETE FROM shown WHERE run = ?", row)
        connection.execute("DELETE FROM runs WHERE run = ?", row)


def _add(
    connection: sqlite3.Connection, path: str, stamp: tuple[int, int], read: RunOutcomes | str
) -> None:
    if isinstance(read, str):
        row = [path, *stamp, read, *([None] * 10), "", None]
        _insert_run(connection, row)
        return
    kernel, head = read.head.kernel, read.head
    passed = {id: each for id, each in read.cases.items() if each.outcome is Outcome.PASS}
    row = [path, *stamp, "", kernel.id, kernel.release, kernel.profile, kernel.variant]
    row += [kernel.config_sha256, kernel.source, kernel.build, head.started, head.suite]
    row += [head.host["accel"], read.verdict or "", _passed(connection, passed)]
    run = _insert_run(connection, row)
    for id, each in read.cases.items():
        if each.outcome is not Outcome.PASS:
            case, program = _case(connection, id), _program(connection, each.program)
            values = (run, case, each.outcome.value, program, _text(each.reason[:_REASON]))
            connection.execute("INSERT INTO shown VALUES (?, ?, ?, ?, ?)", values)


def _insert_run(connection: sqlite3.Connection, row: Sequence[object]) -> int:
    places = ", ".join("?" * _COLUMNS)
    values = [_text(each) if isinstance(each, str) else each for each in row]
    done = connection.execute(f"INSERT INTO runs VALUES (NULL, {places})", values)
    assert done.lastrowid is not None
    return done.lastrowid


def _passed(connection: sqlite3.Connection, cases: Mapping[str, CaseOutcome]) -> int:
    pairs = sorted(
        (_case(connection, id), _program(connection, each.program)) for id, each in cases.items()
    )
    numbers = array("I", [case for case, _ in pairs] + [program for _, program in pairs])
    content = zlib.compress(numbers.tobytes(), 1)
    return _number(connection, "passed", ("content",), (content,))


def _case(connection: sqlite3.Connection, name: str) -> int:
    return _number(connection, "cases", ("name",), (name,))


def _program(connection: sqlite3.Connection, program: Program) -> int:
    values = (_text(program.digest), _text(program.course))
    return _number(connection, "programs", ("digest", "course"), values)


def _number(
    connection: sqlite3.Connection, table: str, names: Sequence[str], values: Sequence[object]
) -> int:
    """The number of a row, added if missing."""
    where = " AND ".join(f"{name} = ?" for name in names)
    row = connection.execute(f"SELECT id FROM {table} WHERE {where}", values).fetchone()
    if row is not None:
        return int(row[0])
    marks = ", ".join("?" * len(names))
    done = connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", values)
    assert done.lastrowid is not None
    return done.lastrowid
