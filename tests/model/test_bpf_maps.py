"""Maps of the model: a hash is a dictionary of limited size, walked in any order there may be."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from conformance.abi.bpf import MapType
from conformance.model.bpf.maps import End, Map, create
from conformance.model.errors import Errno

keys = st.sampled_from([bytes([number] * 4) for number in range(5)])
values = st.binary(min_size=2, max_size=2)


def outcome(update: object, *arguments: object) -> str:
    """The error of a call, "" for none."""
    assert callable(update)
    try:
        update(*arguments)
    except Errno as error:
        return error.name
    return ""


class HashAndDictionary(RuleBasedStateMachine):
    """A hash beside a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.map = create(MapType.HASH, 4, 2, 3)
        self.twin: dict[bytes, bytes] = {}

    @rule(key=keys, value=values, flags=st.integers(0, 3))
    def update(self, key: bytes, value: bytes, flags: int) -> None:
        said = outcome(self.map.update, key, value, flags)
        expected = ""
        if flags == 3:
            expected = "EINVAL"
        elif flags == 1 and key in self.twin:
            expected = "EEXIST"
        elif flags == 2 and key not in self.twin:
            expected = "ENOENT"
        elif key not in self.twin and len(self.twin) == 3:
            expected = "E2BIG"
        assert said == expected
        if not said:
            self.twin[key] = value

    @rule(key=keys)
    def delete(self, key: bytes) -> None:
        expected = "" if key in self.twin else "ENOENT"
        assert outcome(self.map.delete, key) == expected
        self.twin.pop(key, None)

    @invariant()
    def the_same_is_found(self) -> None:
        assert {key: bytes(value) for key, value in self.map.values.items()} == self.twin

    @invariant()
    def a_walk_finds_each_key_once(self) -> None:
        assert walks(self.map) == set(permutations(self.twin))


TestHashAndDictionary = HashAndDictionary.TestCase


def walks(map_: Map) -> set[tuple[bytes, ...]]:
    """All orders in which a map may be walked from its beginning."""
    found: set[tuple[bytes, ...]] = set()
    kept = dict(map_.following)
    waiting: list[tuple[bytes, ...]] = [()]
    while waiting:
        walk = waiting.pop()
        map_.following = dict(kept)
        key = None
        for following in walk:
            map_.decide(key, following)
            key = following
        for place in map_.next_keys(key):
            if isinstance(place, End):
                found.add(walk)
            else:
                waiting.append((*walk, place))
    map_.following = kept
    return found


def test_an_order_that_was_seen_stays() -> None:
    map_ = create(MapType.HASH, 1, 1, 4)
    for key in (b"a", b"b", b"c"):
        map_.update(key, b"!", 0)
    map_.decide(b"c", b"a")
    assert walks(map_) == {(b"c", b"a", b"b"), (b"b", b"c", b"a")}
    map_.decide(b"a", End.LAST)
    assert walks(map_) == {(b"b", b"c", b"a")}
    assert map_.next_keys(None) == [b"b"]
    assert map_.next_keys(b"none") == [b"b"]


def test_no_order_goes_round_in_circles() -> None:
    map_ = create(MapType.HASH, 1, 1, 4)
    for key in (b"a", b"b", b"c"):
        map_.update(key, b"!", 0)
    map_.decide(b"a", b"b")
    assert map_.next_keys(b"b") == [b"c", End.LAST]


@given(st.integers(0, 5))
def test_an_array_is_walked_in_its_order(index: int) -> None:
    map_ = create(MapType.ARRAY, 4, 1, 4)
    key = index.to_bytes(4, "little")
    following = {3: End.LAST, 4: bytes(4), 5: bytes(4)}
    expected = following.get(index, (index + 1).to_bytes(4, "little"))
    assert map_.next_keys(key) == [expected]


@pytest.mark.parametrize("attributes", [(0, 4, 8, 4), (1, 0, 8, 4), (2, 8, 8, 4), (2, 4, 0, 4)])
def test_what_makes_no_map(attributes: tuple[int, int, int, int]) -> None:
    with pytest.raises(Errno, match="EINVAL"):
        create(*attributes)
