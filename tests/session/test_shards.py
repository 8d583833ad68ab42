"""Shards: the same split on every machine, of equal durations."""

from __future__ import annotations

import random

import pytest

from conformance.cases.discovery import all_cases
from conformance.results.shard import Shard, digest_of_ids, path
from conformance.session import shards
from conformance.session.shards import measured, shard, split

IDS = [f"write.case.v{number}" for number in range(97)]


@pytest.mark.parametrize("number", [1, 2, 7, 97])
def test_each_case_is_in_one_shard(number: int) -> None:
    found = split(IDS, number)
    assert sorted(id for each in found for id in each) == sorted(IDS)
    assert {len(each) for each in found} <= {97 // number, 97 // number + 1}


def test_split_depends_on_ids_alone() -> None:
    mixed = random.Random(1).sample(IDS, len(IDS))
    assert split(mixed, 5) == split(IDS, 5)


def test_split_is_the_one_of_the_release() -> None:
    """Machines with one revision of the suite, and another Python, split alike."""
    assert split(IDS[:8], 2)[0] == [f"write.case.v{number}" for number in (0, 3, 2, 4)]


def test_long_cases_are_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "measured", lambda: {"a.long": 3.0, "a.longer": 4.0})
    found = split([*IDS, "a.long", "a.longer"], 2)
    assert ("a.longer" in found[0], "a.long" in found[1]) == (True, True)
    # A second is 20 cases of 0.05 s.
    assert len(found[1]) - len(found[0]) in (20, 21)


def test_measured_cases_exist() -> None:
    known = {each.id for each in all_cases()}
    assert {id for id in measured() if not {id, id.rpartition(".")[0]} & known} == set()


def test_a_shard_of_a_shard() -> None:
    outer, halves = shard("2/3", IDS), [shard(f"2/3.{n}/2", IDS) for n in (1, 2)]
    assert sorted(id for half in halves for id in half.cases) == list(outer.cases)
    assert {each.sha256 for each in halves} == {outer.sha256} == {digest_of_ids(IDS)}
    assert outer.whole == 97


@pytest.mark.parametrize("part", ["", "1", "0/2", "3/2", "1/2.", "1/2/2", "-1/2", "1/2.3/2"])
def test_other_names_are_refused(part: str) -> None:
    with pytest.raises(ValueError, match="is no shard"):
        path(part)
    with pytest.raises(ValueError, match="is no shard"):
        Shard(part, (), 0, "")
