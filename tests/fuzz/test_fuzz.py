"""The short form of `make fuzz`: every target, seconds in all, and what was once found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.results.case_result import CaseResult
from conformance.results.journal import JournalWriter
from conformance.results.replay import read_journal
from kernels.patches.diff import Diff
from tests.fuzz.driver import KEPT, Finding, Fuzzer, keep, kept, smaller
from tests.fuzz.target import Target, TooSlow
from tests.fuzz.targets import targets
from tests.model.generated import STEADY
from tests.report.samples import UNHURRIED, head, results
from vm import wire

NAMES = [target.name for target in targets(Path("nowhere"))]
INPUTS = 120
SECONDS = 1.0


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """A target by name."""
    return next(each for each in targets(tmp_path) if each.name == request.param)


@pytest.mark.parametrize("target", NAMES, indirect=True)
def test_valid_inputs_are_read(target: Target) -> None:
    """A seed that is refused leads nowhere but to refusals."""
    seeds = target.seeds()
    kinds = [target.kind(seed) for seed in seeds]
    assert "read" in kinds


@pytest.mark.parametrize("target", NAMES, indirect=True)
def test_nothing_is_found(target: Target) -> None:
    tally = Fuzzer(target).go(INPUTS, SECONDS)
    assert [finding.what for finding in tally.findings] == []


@pytest.mark.parametrize("target", NAMES, indirect=True)
def test_what_was_found_once_is_not_found_again(target: Target) -> None:
    for name, data in kept(target).items():
        try:
            target.kind(data)
        except Exception as error:
            raise AssertionError(f"fixtures/fuzz/{target.name}/{name}") from error


def test_every_kept_input_has_its_target() -> None:
    assert {directory.name for directory in KEPT.iterdir()} <= set(NAMES)


# The fuzzer itself


def _picky(data: bytes) -> None:
    if b"\x07" in data:
        raise ZeroDivisionError
    if data.startswith(b"x"):
        raise ValueError


PICKY = Target("picky", _picky, lambda: [b"abc\x06def"], (ValueError,))


def test_a_fault_is_found_once_made_small_and_kept(tmp_path: Path) -> None:
    tally = Fuzzer(PICKY).go(3000)
    (finding,) = tally.findings
    assert finding.data == b"\x07"
    assert finding.what.startswith("ZeroDivisionError tests/fuzz/test_fuzz.py:")
    keep(tally.findings, tmp_path)
    assert kept(PICKY, tmp_path) == {finding.name: b"\x07"}


def test_the_same_seed_gives_the_same_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        read: list[bytes] = []
        Fuzzer(Target("some", read.append, lambda: [b'{"a": 1}\n{"b": [2]}\n']), seed).go(200)
        return read

    assert inputs(1) == inputs(1)
    assert inputs(1) != inputs(2)


def test_an_input_that_takes_for_ever_is_a_finding() -> None:
    def read(data: bytes) -> None:
        while data:
            pass

    slow = Target("slow", read, lambda: [b"x"])
    with pytest.raises(TooSlow):
        slow.kind(b"x")


def test_an_input_is_made_small_only_as_long_as_the_same_comes_of_it() -> None:
    kind = f"ZeroDivisionError tests/fuzz/test_fuzz.py:{_picky.__code__.co_firstlineno + 2}"
    assert smaller(PICKY, b"a" * 500 + b"\x07" + b"b" * 500, kind) == b"\x07"
    assert Finding("t", kind, b"").name.startswith("zerodivisionerror-")


# Round trips, where there is a writer

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
).filter(lambda value: "inf" not in repr(value))


@STEADY
@given(st.lists(st.dictionaries(st.text(), VALUES), max_size=4), st.data())
def test_messages_survive_any_stream(
    messages: list[dict[str, object]], data: st.DataObject
) -> None:
    stream = b"".join(map(wire.pack, messages))
    decoder = wire.Decoder()
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        decoder.feed(stream[:size])
        stream = stream[size:]
        while (payload := decoder.take()) is not None:
            found.append(wire.unpack(payload))
    assert found == messages
    assert decoder.pending == 0


@UNHURRIED
@given(st.lists(results(), max_size=3, unique_by=lambda each: each.id), st.floats(0, 1))
def test_a_journal_that_was_cut_off_has_what_was_complete(
    tmp_path_factory: pytest.TempPathFactory, cases: list[CaseResult], part: float
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with JournalWriter(path, sync=False) as journal:
        journal.begin(head())
        for case in cases:
            journal.case(case)
        journal.end()
    whole = path.read_bytes()
    end = int(part * len(whole))
    path.write_bytes(whole[:end])
    lines = whole[:end].count(b"\n")
    found = read_journal(path)
    assert list(found.results.values()) == cases[: max(0, lines - 1)]
    assert found.ended == (lines == len(cases) + 2)
    # The next writer goes on behind what is complete.
    with JournalWriter(path, sync=False) as journal:
        journal.begin(head())
        journal.end()
    assert [json.loads(line)["event"] for line in path.read_bytes().splitlines()][-1] == "end"
    assert read_journal(path).torn is False


LINES = (" same", "-gone", "+new", " ", "- -- a/x", "+++ b/x")
HUNKS = st.lists(st.sampled_from(LINES), min_size=1)


@STEADY
@given(HUNKS, st.text(alphabet="abc -+@\n", max_size=40))
def test_a_diff_in_words_is_taken_out_of_them(lines: list[str], words: str) -> None:
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    hunk = "".join(f"{line}\n" for line in lines)
    diff = f"--- a/x\n+++ b/x\n@@ -1,{old} +1,{new} @@\n{hunk}"
    assert Diff(f"{words}\n{diff}-- \n2.39\n").text == diff
