"""Mutants of the model: what is changed, what is left alone, and what a replay notices."""

from __future__ import annotations

import ast
import pickle
from collections import Counter

import pytest

from conformance.abi.profile import profile_for
from conformance.cases.variants import all_variants
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from tests.bench.adequacy import __main__ as bench
from tests.bench.adequacy.changing import ROOT, Change
from tests.bench.adequacy.mutants import mutants, mutated
from tests.bench.adequacy.recording import Recorder, Recordings
from tests.bench.adequacy.replay import Noticed, Recording, Strayed, replayed

SOURCE = '''\
"""A module."""

LIMIT = 7


def judged(count: int, flag: bool = False) -> int:
    """A function."""
    assert count >= 0
    if count > LIMIT and not flag:
        raise Errno("E2BIG", f"{count} is too large")
    if world.has("switch"):
        raise NotModelled("more")
    world.total += count
    return count
'''


def test_operators() -> None:
    assert [(each.function, each.text) for each in mutants(SOURCE)] == [
        ("", "literal: 7 -> 8"),
        ("", "literal: 7 -> 6"),
        ("judged", "always: count > LIMIT and (not flag) -> True"),
        ("judged", "never: count > LIMIT and (not flag) -> False"),
        ("judged", "clause: count > LIMIT and (not flag) -> not flag"),
        ("judged", "clause: count > LIMIT and (not flag) -> count > LIMIT"),
        ("judged", "relation: count > LIMIT -> count >= LIMIT"),
        ("judged", "not: not flag -> flag"),
        ("judged", "delete: raise Errno('E2BIG', f'{count} is too large') -> pass"),
        ("judged", "literal: 'E2BIG' -> 'EINVAL'"),
        # Not "never": that a refusal is lost no case can notice.
        ("judged", "always: world.has('switch') -> True"),
        ("judged", "delete: world.total += count -> pass"),
    ]


def test_each_mutant_changes_one_place() -> None:
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants(SOURCE):
        after = ast.unparse(mutated(SOURCE, mutant.number)).splitlines()
        assert Counter(before) != Counter(after)
        assert (Counter(before) - Counter(after)).total() <= 1, mutant


VARIANT = next(each for each in all_variants() if each.case.id == "write.returns_all_bytes")


def recorded(serial: int = 1) -> bytes:
    """A case on the model of 6.12 instead of a kernel."""
    profile = profile_for("6.12")
    recorder = Recorder(ModelExecutor(Model(profile)))
    ue = UserEvents(Lockstep(Model(profile), recorder), serial=1)
    VARIANT.function(ue, **VARIANT.arguments)
    ue.lockstep.run()
    return pickle.dumps(Recording(serial, 0, recorder.answers))


def test_replay_of_the_same_model_agrees() -> None:
    assert replayed(VARIANT, recorded(), profile_for("6.12")).mismatches == []


@pytest.mark.parametrize(
    ("function", "text", "how"),
    [
        ("write_core", "delete: record(world, process, event, payload) -> pass", "differs"),
        ("write_core", "literal: 'EBADF' -> 'EINVAL'", ""),
        # At import.
        ("", "literal: 4 -> 5", "differs"),
    ],
)
def test_change_is_noticed_by_the_answers(
    monkeypatch: pytest.MonkeyPatch, function: str, text: str, how: str
) -> None:
    file = "conformance/model/user_events/writing.py"
    found = mutants((ROOT / file).read_text())
    mutant = next(each for each in found if (each.function, each.text) == (function, text))
    recordings = Recordings("6.12", "6.12", {VARIANT.id: recorded()}, {})
    monkeypatch.setitem(bench._recordings, "6.12", recordings)
    change = Change(file, mutant, [("6.12", VARIANT.id)])
    noticed, _ = bench._forked(bench._replay, change, 10.0) or (Noticed("dies"), 0.0)
    assert (noticed.how, noticed.tried) == (how, 1)


def test_replay_notices_another_program() -> None:
    # Its names are those of another serial.
    with pytest.raises(Strayed):
        replayed(VARIANT, recorded(serial=2), profile_for("6.12"))
