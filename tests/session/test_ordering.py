"""The order of cases, and the store of their durations."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.cases.case import Case, Facility, Isolation
from conformance.session.ordering import CaseHistory, Durations, ordered
from tests.runner.fake_guest import PLAIN


def _case(name: str, isolation: Isolation = Isolation.EVENTS) -> tuple[Case, str]:
    return replace(PLAIN, id=name, isolation=isolation), name


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


def test_cases_are_ordered_by_isolation_then_duration() -> None:
    """Except for a short case at the beginning."""
    in_order = ["a.shared", "a.fatal_and_long", "a.long", "a.new", "a.short", "a.fatal"]
    assert _names() == in_order


def test_smp_cases_go_last() -> None:
    case, name = _case("a.both", Isolation.GLOBAL)
    both = (replace(case, facilities=(Facility.SMP,)), name)
    found = ordered([both, *CASES], lambda item: item, CaseHistory(SECONDS))
    assert [name for _, name in found] == [*_names(), "a.both"]


@pytest.mark.parametrize("seed", [None, 7])
def test_ended_cases_are_dropped_and_suspects_go_last(seed: int | None) -> None:
    history = CaseHistory(SECONDS, ended=["a.shared"], suspects=["a.fatal", "a.shared"])
    names = [name for _, name in ordered(CASES, lambda item: item, history, seed)]
    assert names[-1] == "a.fatal"
    assert names == [name for name in _names(seed) if name not in history.suspects] + ["a.fatal"]


def test_shuffle_depends_on_the_seed_alone() -> None:
    assert _names(7) == _names(7)
    assert len({tuple(_names(seed)) for seed in range(20)}) > 1
    assert sorted(_names(7)) == sorted(_names())
    state = random.getstate()
    _names(7)
    assert random.getstate() == state


def test_durations_are_remembered(tmp_path: Path) -> None:
    durations = Durations(tmp_path, "6.12")
    assert durations.read() == {}
    durations.remember({"a": 1.0, "b": 2.0})
    durations.remember({"b": 3.0})
    assert Durations(tmp_path, "6.12").read() == {"a": 1.0, "b": 3.0}
    assert Durations(tmp_path, "6.1").read() == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": "long"}', "\0"])
def test_invalid_durations_are_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "durations").mkdir()
    (tmp_path / "durations/6.12.json").write_text(text)
    assert Durations(tmp_path, "6.12").read() == {}


def test_unwritable_durations_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "durations").write_text("")
    Durations(tmp_path, "6.12").remember({"a": 1.0})
