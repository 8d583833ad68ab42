"""The state of a matrix on a terminal of some size."""

from __future__ import annotations

import io
import re

import pytest

from conformance.cli.matrix.progress import Column, Screen


def screen_of(text: str, rows: int, columns: int) -> list[str]:
    """What a terminal shows of a text with the sequences that a Screen writes."""
    lines, row = [""] * rows, 0
    for token in re.findall(r"\x1b\[\d*[A-Z]|\n|[^\x1b\n]+", text):
        if token == "\n":
            row += 1
            if row == rows:
                lines, row = [*lines[1:], ""], rows - 1
        elif token.endswith("A") and token.startswith("\x1b"):
            row = max(0, row - int(token[2:-1]))
        elif token == "\x1b[J":
            lines[row:] = [""] * (rows - row)
        elif token != "\x1b[K":
            assert len(token) < columns, "it wraps"
            lines[row] = token
    return lines


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setattr("conformance.cli.matrix.progress._INTERVAL_S", 0.0)
    monkeypatch.setenv("LINES", "8")
    monkeypatch.setenv("COLUMNS", "40")
    return io.StringIO()


def test_many_kernels_fit_on_the_terminal(terminal: io.StringIO) -> None:
    """Those that run are shown first, those that are done last."""
    columns = [Column(f"6.{number}", cases=9) for number in range(30)]
    screen = Screen(terminal, columns, moving=True)
    columns[0].state = "done"
    for number in range(1, 9):
        columns[20].state, columns[20].done = "judging", number
        screen.show(2)
    shown = screen_of(terminal.getvalue(), 8, 40)
    assert shown[0] == "1 of 30 kernels, 2 workers"
    assert shown[1].split() == ["6.20", "judging,", "8/9", "cases"]
    assert [line.split()[0] for line in shown[2:6]] == ["6.1", "6.2", "6.3", "6.4"]
    assert shown[6:] == ["... and 25 more", ""]


def test_long_lines_are_cut(terminal: io.StringIO) -> None:
    columns = [Column("6.12+a_patch_with_a_name_longer_than_the_terminal")]
    screen = Screen(terminal, columns, moving=True)
    screen.show(1)
    columns[0].state = "building"
    screen.show(1)
    shown = screen_of(terminal.getvalue(), 8, 40)
    assert [line[-1:] for line in shown[1:3]] == ["…", ""]


def test_headline_is_current(terminal: io.StringIO) -> None:
    """Also when only the workers change, or the time that is left."""
    screen = Screen(terminal, [Column("6.12", "judging", left_s=600.0)], moving=True)
    screen.show(1)
    screen.show(2)
    shown = screen_of(terminal.getvalue(), 8, 40)
    assert shown[0].startswith("0 of 1 kernels, 2 workers, about 5 min")
    assert shown[2] == ""


def test_a_file_gets_a_line_for_each_change() -> None:
    stream = io.StringIO()
    columns = [Column(f"6.{number}") for number in range(30)]
    screen = Screen(stream, columns, moving=False)
    screen.show(1)
    columns[3].state = "building"
    screen.show(2)
    assert stream.getvalue().splitlines()[29:] == [f"{'6.29':20} waiting", f"{'6.3':20} building"]
