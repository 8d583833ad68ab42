"""Follow a growing console, in slices and with a limit."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from host.deadline import Deadline
from host.kernel_reports import ReportKind
from vm.qemu.console import Console


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path / "console.log")


def _append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_missing_file_is_an_empty_console(console: Console) -> None:
    assert (console.position(), console.text(), console.findings()) == (0, "", ())


def test_slice_starts_at_a_position(console: Console) -> None:
    _append(console.path, b"[    1.000000] Kernel panic - not syncing: old\r\n")
    since = console.position()
    _append(console.path, b"[    2.000000] kernel BUG at new.c:1!\r\n")
    assert console.text(since) == "[    2.000000] kernel BUG at new.c:1!\n"
    assert [found.kind for found in console.findings(since)] == [ReportKind.OOPS]


def test_long_slice_keeps_start_and_end(console: Console) -> None:
    flood = b"[    1.000000] much\r\n" * 100_000
    _append(console.path, b"first\r\n" + flood + b"[    2.000000] kernel BUG at x.c:1!\r\n")
    text = console.text()
    assert len(text) < 1 << 18
    assert text.startswith("first\n")
    assert "kernel BUG at x.c:1!" in text[-100:]
    assert "bytes left out]" in text
    assert [found.kind for found in console.findings()] == [ReportKind.OOPS]


def test_line_written_in_pieces_is_found(console: Console) -> None:
    _append(console.path, b"before \xc3")

    def rest() -> None:
        time.sleep(0.05)
        _append(console.path, b"\xa9 aft")
        time.sleep(0.05)
        _append(console.path, b"er\n")

    writer = threading.Thread(target=rest)
    writer.start()
    found = console.wait_for("é after", Deadline(5, "line"), since=0, alive=lambda: True)
    writer.join()
    assert found


@pytest.mark.parametrize(("seconds", "alive"), [(0.05, True), (30, False)])
def test_waiting_ends_with_deadline_or_guest(console: Console, seconds: float, alive: bool) -> None:
    _append(console.path, b"last words")
    began = time.monotonic()
    limit = Deadline(seconds, "line")
    assert console.wait_for("words", limit, since=0, alive=lambda: alive)
    assert not console.wait_for("never", limit, since=0, alive=lambda: alive)
    assert time.monotonic() - began < 2
