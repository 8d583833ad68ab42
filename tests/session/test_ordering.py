"""The order in which cases run, and what is remembered of how long they took."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cases.case import Case, Facility, Isolation, Tier
from conformance.session.ordering import CaseHistory, Durations, ordered


def _case(name: str, isolation: Isolation = Isolation.EVENTS) -> tuple[Case, str]:
    case = Case(
        id=name,
        spec="",
        doc="",
        profiles="6.4..",
        needs=(),
        tier=Tier.QUICK,
        isolation=isolation,
    )
    return case, name


CASES = [
    _case("a.short"),
    _case("a.shared", Isolation.GLOBAL),
    _case("a.long"),
    _case("a.new"),
    _case("a.fatal", Isolation.FATAL),
    _case("a.fatal_and_long", Isolation.FATAL),
]
SECONDS = {"a.short": 0.01, "a.shared": 0.02, "a.long": 2.0, "a.fatal": 0.3, "a.fatal_and_long": 9}


def _names(seed: int | None = None) -> list[str]:
    return [name for _, name in ordered(CASES, lambda item: item, CaseHistory(SECONDS), seed)]


def test_a_new_system_first_then_the_longest_and_last_what_ends_its_guest() -> None:
    """But for a short one before them all."""
    in_order = ["a.shared", "a.fatal_and_long", "a.long", "a.new", "a.short", "a.fatal"]
    assert _names() == in_order


def test_what_wants_two_processors_goes_last() -> None:
    case, name = _case("a.both", Isolation.GLOBAL)
    both = (replace(case, facilities=(Facility.SMP,)), name)
    found = ordered([both, *CASES], lambda item: item, CaseHistory(SECONDS))
    assert [name for _, name in found] == [*_names(), "a.both"]


@pytest.mark.parametrize("seed", [None, 7])
def test_what_ended_is_left_out_and_what_a_run_may_have_died_of_goes_last(
    seed: int | None,
) -> None:
    history = CaseHistory(SECONDS, ended=["a.shared"], suspects=["a.fatal", "a.shared"])
    names = [name for _, name in ordered(CASES, lambda item: item, history, seed)]
    assert names[-1] == "a.fatal"
    assert names == [name for name in _names(seed) if name not in history.suspects] + ["a.fatal"]


def test_by_chance_and_the_same_for_one_seed() -> None:
    assert _names(7) == _names(7)
    assert len({tuple(_names(seed)) for seed in range(20)}) > 1
    assert sorted(_names(7)) == sorted(_names())
    state = random.getstate()
    _names(7)
    assert random.getstate() == state


def test_remembered(tmp_path: Path) -> None:
    durations = Durations(tmp_path, "6.12")
    assert durations.read() == {}
    durations.remember({"a": 1.0, "b": 2.0})
    durations.remember({"b": 3.0})
    assert Durations(tmp_path, "6.12").read() == {"a": 1.0, "b": 3.0}
    assert Durations(tmp_path, "6.1").read() == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": "long"}', "\0"])
def test_a_memory_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "durations").mkdir()
    (tmp_path / "durations/6.12.json").write_text(text)
    assert Durations(tmp_path, "6.12").read() == {}


def test_nowhere_to_remember(tmp_path: Path) -> None:
    (tmp_path / "durations").write_text("")
    Durations(tmp_path, "6.12").remember({"a": 1.0})
