"""Reading journals, also those that no run can have written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from conformance.results.errors import ReportError
from conformance.results.journal import JournalWriter, sealed
from conformance.results.outcome import Outcome
from conformance.results.replay import Running, read_head, read_journal
from conformance.results.run import Functions
from tests.report.samples import case, contradiction, failure, head


def part(path: Path, *names: str, running: str = "", end: str | None = None) -> None:
    """Start or resume the run: these cases pass, one more begins."""
    with JournalWriter(path) as journal:
        journal.begin(head())
        journal.plan(4, Functions(3, 5))
        for name in names:
            journal.running(name, "quick")
            journal.case(case(name))
        if running:
            journal.running(running, "quick")
        if end is not None:
            journal.end(end)


def test_a_resumed_run_is_one_run(path: Path) -> None:
    part(path, "write.a", "write.b", running="write.c")
    assert not read_journal(path).complete
    part(path, "write.c", "write.d", end="")
    journal = read_journal(path)
    assert list(journal.results) == ["write.a", "write.b", "write.c", "write.d"]
    assert journal.functions == Functions(3, 5)
    assert (journal.parts, journal.selected, journal.complete, journal.ended) == (2, 4, True, True)


def test_extra_results_are_not_selected_cases(path: Path) -> None:
    with JournalWriter(path) as journal:
        journal.begin(head())
        journal.plan(1)
        journal.guests("booted: no space")
        journal.contradiction(contradiction())
        journal.extra(case("module.a.load"))
        journal.extra(case("module.a.load", Outcome.FAIL))
        journal.case(failure())
    found = read_journal(path)
    assert found.head is not None
    assert found.head.host["guests"] == "booted: no space"
    assert found.contradictions == {"ebadf_when_disabled": contradiction()}
    assert found.results["module.a.load"].outcome is Outcome.FAIL
    assert (found.extra, found.count, found.complete) == ({"module.a.load"}, 1, True)


@pytest.mark.parametrize(
    ("ends", "deaths"),
    # With "" the worker died, and the run continued.
    [([None], 1), ([None, None], 2), (["interrupted"], 0), (["interrupted", None], 1), ([""], 1)],
)
def test_deaths_during_a_case_are_counted(path: Path, ends: list[str | None], deaths: int) -> None:
    for end in ends:
        part(path, running="write.a", end=end)
    assert read_journal(path).deaths[Running("write.a", "quick")] == deaths


def test_a_case_that_starts_twice_died_once(path: Path) -> None:
    with JournalWriter(path) as journal:
        journal.begin(head())
        journal.running("write.a", "full")
        journal.running("write.a", "full")
        journal.case(case("write.a"))
    assert read_journal(path).deaths == {Running("write.a", "full"): 1}


@pytest.mark.parametrize("number", range(1, 10))
def test_a_changed_or_lost_line_is_named(path: Path, number: int) -> None:
    part(path, "write.a", "write.b", "write.c", end="")
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 9
    edited = lines[number - 1].replace('"s": ', '"s": 1')
    for changed in (edited, "", *([lines[1]] if number != 2 else [])):
        path.write_text("".join([*lines[: number - 1], changed, *lines[number:]]))
        if number == len(lines) and not changed:
            # The run was killed before it wrote the entry.
            assert not read_journal(path).ended
            continue
        with pytest.raises(ReportError, match=f"journal.jsonl: line {number}") as caught:
            read_journal(path)
        assert "run again" in caught.value.hint


def test_swapped_lines_are_detected(path: Path) -> None:
    part(path, "write.a", "write.b")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], *lines[4:6], *lines[2:4]]))
    with pytest.raises(ReportError, match="line 3: was changed or moved"):
        read_journal(path)


def first(**entry: object) -> bytes:
    """A journal of one entry."""
    return sealed(json.dumps(entry).encode(), b"")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{\n", "line 1: Expecting property name"),
        (b"[]\n", "line 1: is not a journal entry"),
        (b'{"event": "run"}\n', "line 1: has no digest: written by an older uevt"),
        (b"Dear diary", "line 1: is not a journal entry"),
        (b"\x80\n", "line 1: 'utf-8' codec"),
        (first(event="party"), "line 1: is not a run entry"),
        (first(event="run", schema=1), "line 1: object missing required field `kernel`"),
        (first(event="run", **to_builtins(head())), "line 1: has no time"),
    ],
)
def test_a_file_that_is_not_a_journal_is_refused(path: Path, data: bytes, message: str) -> None:
    path.write_bytes(data)
    with pytest.raises(ReportError, match=f"journal.jsonl: {message}"):
        read_journal(path)
    assert path.read_bytes() == data


ENDED = "line 5: write.a has already ended"
ANOTHER = "line 5: continues another run"
NO_ID = r"line 5\.case: object missing required field `id`"
RESULT = {"event": "case", "case": case("write.e").to_json()}


@pytest.mark.parametrize(
    ("names", "end", "entry", "message"),
    [
        ("a", None, {"event": "party"}, "line 5: is not a journal entry"),
        ("a", None, {"event": "case", "case": {}}, NO_ID),
        *(
            ("a", None, {"event": event, "case": case("write.a").to_json()}, ENDED)
            for event in ("case", "attempt", "extra")
        ),
        ("a", None, {"event": "running", "id": "write.a", "tier": "quick"}, ENDED),
        ("a", None, {"event": "plan", "selected": 5}, "line 5: 5 cases are selected, 4 were"),
        ("a", None, {"event": "run", **to_builtins(replace(head(), suite="0.2.0"))}, ANOTHER),
        ("abcd", None, RESULT, "line 11: more cases ended than the 4 selected"),
        ("a", "interrupted", RESULT, "line 6: follows the end of the run"),
    ],
)
def test_an_inconsistent_entry_is_refused(
    path: Path, names: str, end: str | None, entry: dict[str, object], message: str
) -> None:
    part(path, *(f"write.{name}" for name in names), end=end)
    with JournalWriter(path) as journal:
        journal._append(dict(entry))
    with pytest.raises(ReportError, match=message):
        read_journal(path)


def test_zeros_after_a_power_cut_are_a_torn_line(path: Path) -> None:
    part(path, "write.a")
    with path.open("ab") as file:
        file.write(b'{"event": "case", ' + b"\0" * 4096)
    journal = read_journal(path)
    assert journal.torn
    assert list(journal.results) == ["write.a"]


def test_the_head_can_be_read_alone(path: Path) -> None:
    assert read_head(path) is None
    path.touch()
    assert read_head(path) is None
    part(path, "write.a")
    assert read_head(path) == head()
