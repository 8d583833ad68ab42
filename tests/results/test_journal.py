"""The journal keeps every completed line, however its writer ends."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import to_builtins

from conformance.results.errors import ReportError
from conformance.results.journal import JournalWriter, is_in_use
from conformance.results.outcome import Outcome
from conformance.results.replay import read_journal
from tests.report.samples import case, failure, head

ROOT = Path(__file__).resolve().parents[2]
# Characters that end a line for some readers.
BREAKS = "\r\n\x0b\x0c\x1c\x85\u2028\u2029"
# Write results until killed, and print a line after each that is on disk.
WRITER = """
import sys
from pathlib import Path
from conformance.results.journal import JournalWriter
from tests.report.samples import case, head
with JournalWriter(Path(sys.argv[1])) as journal:
    journal.begin(head())
    for number in range(100_000):
        journal.case(case(f"write.case_{number}", reason="x" * 5000))
        print(number, flush=True)
"""


def write(path: Path) -> None:
    """A short run with a second run, a failure, and its end."""
    with JournalWriter(path) as journal:
        journal.begin(head())
        journal.attempt(case("write.a", Outcome.ERROR, reason=BREAKS))
        journal.case(case("write.a"))
        journal.case(failure())
        journal.end()


def test_a_written_journal_is_read_back(path: Path) -> None:
    write(path)
    journal = read_journal(path)
    assert journal.head == head()
    assert list(journal.results.values()) == [case("write.a"), failure()]
    assert journal.attempts == [case("write.a", Outcome.ERROR, reason=BREAKS)]
    assert (journal.ended, journal.torn) == (True, False)


def test_a_truncated_journal_keeps_its_complete_lines(path: Path) -> None:
    write(path)
    data = path.read_bytes()
    breaks = [at for at, byte in enumerate(data) if byte == ord("\n")]
    beside_breaks = {at + offset for at in breaks for offset in (-1, 0, 1)} - {len(data)}
    for length in sorted(beside_breaks | set(range(0, len(data), 29))):
        path.write_bytes(data[:length])
        journal = read_journal(path)
        lines = data[:length].count(b"\n")
        assert journal.torn is (length > 0 and not data[:length].endswith(b"\n"))
        assert (journal.head is not None) == (lines >= 1)
        assert len(journal.attempts) == (lines >= 2)
        assert len(journal.results) == max(0, lines - 2)
        assert not journal.ended


def test_a_writer_continues_after_the_last_complete_line(path: Path) -> None:
    write(path)
    data = path.read_bytes()
    for cut in (1, 20, len(data) - 10):
        path.write_bytes(data[:-cut])
        with JournalWriter(path) as journal:
            # A reader changes nothing.
            assert path.read_bytes() == data[:-cut]
            journal.begin(head())
            journal.case(case("write.later"))
        assert not read_journal(path).torn
        assert "write.later" in read_journal(path).results


def test_a_torn_line_longer_than_a_block_is_cut_off(path: Path) -> None:
    with JournalWriter(path) as journal:
        journal.begin(head())
        journal.case(case("write.a"))
    with path.open("ab") as file:
        file.write(b'{"event": "' + b"x" * 200_000)
    with JournalWriter(path) as journal:
        journal.case(case("write.b"))
    assert list(read_journal(path).results) == ["write.a", "write.b"]


def test_a_full_disk_leaves_whole_lines(path: Path) -> None:
    with JournalWriter(path) as journal:
        journal.begin(head())
        full = path.stat().st_size
        # Python ignores SIGXFSZ: writing beyond the limit fails with EFBIG after the part that
        # fits.
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (full + 100, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                journal.case(failure())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.stat().st_size == full
        journal.case(case("write.a"))
    assert list(read_journal(path).results) == ["write.a"]


def test_a_journal_has_one_writer_at_a_time(path: Path) -> None:
    with JournalWriter(path):
        assert is_in_use(path)
        with pytest.raises(ReportError, match="is being written by another run"):
            JournalWriter(path)
    assert not is_in_use(path)
    with JournalWriter(path) as later:
        later.begin(head())
    assert read_journal(path).head == head()


def test_a_removed_journal_is_refused(path: Path) -> None:
    """Another run was begun in its place."""
    with JournalWriter(path) as journal:
        journal.begin(head())
        path.unlink()
        with JournalWriter(path) as other:
            other.begin(head())
        journal.end()
    assert not read_journal(path).ended


def test_a_resumed_run_has_not_ended(path: Path) -> None:
    write(path)
    with JournalWriter(path) as journal:
        journal.begin(head())
    assert not read_journal(path).ended


@pytest.mark.parametrize("after", [0, 3, 17])
def test_kill_9_loses_no_acknowledged_line(path: Path, after: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(after + 1)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
    kept = list(read_journal(path).results)
    # One more line may be on disk than was printed.
    assert len(acknowledged) <= len(kept) <= len(acknowledged) + 1
    assert kept == [f"write.case_{number}" for number in range(len(kept))]


def test_a_journal_of_another_schema_is_refused(path: Path) -> None:
    with JournalWriter(path) as journal:
        journal._append({"event": "run", **to_builtins(head()), "schema": 2})
    with pytest.raises(ReportError, match="line 1: schema 2 is of another version of uevt"):
        read_journal(path)


def test_a_missing_journal_is_refused(path: Path) -> None:
    with pytest.raises(ReportError, match="No such file") as caught:
        read_journal(path)
    assert "directory" in caught.value.hint
