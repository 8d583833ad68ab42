"""BPF maps and contexts.

A hash is a dictionary of limited size, walked in any possible order.
"""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from conformance.abi.bpf import MapType
from conformance.model.bpf.maps import End, Map, create
from conformance.model.errors import Errno, NotModelled
from conformance.model.user_events.bpf_context import Context, IovIter

keys = st.sampled_from([bytes([number] * 4) for number in range(5)])
values = st.binary(min_size=2, max_size=2)


def outcome(update: object, *arguments: object) -> str:
    """The error of a call, "" without one."""
    assert callable(update)
    try:
        update(*arguments)
    except Errno as error:
        return error.name
    return ""


class HashAndDictionary(RuleBasedStateMachine):
    """A hash and a dictionary as its model."""

    def __init__(self) -> None:
        super().__init__()
        self.map = create(MapType.HASH, 4, 2, 3)
        self.model: dict[bytes, bytes] = {}

    @rule(key=keys, value=values, flags=st.integers(0, 3))
    def update(self, key: bytes, value: bytes, flags: int) -> None:
        error = outcome(self.map.update, key, value, flags)
        expected = ""
        if flags == 3:
            expected = "EINVAL"
        elif flags == 1 and key in self.model:
            expected = "EEXIST"
        elif flags == 2 and key not in self.model:
            expected = "ENOENT"
        elif key not in self.model and len(self.model) == 3:
            expected = "E2BIG"
        assert error == expected
        if not error:
            self.model[key] = value

    @rule(key=keys)
    def delete(self, key: bytes) -> None:
        expected = "" if key in self.model else "ENOENT"
        assert outcome(self.map.delete, key) == expected
        self.model.pop(key, None)

    @invariant()
    def map_equals_dictionary(self) -> None:
        assert {key: bytes(value) for key, value in self.map.values.items()} == self.model

    @invariant()
    def walks_are_permutations(self) -> None:
        assert walks(self.map) == set(permutations(self.model))


TestHashAndDictionary = HashAndDictionary.TestCase


def walks(map_: Map) -> set[tuple[bytes, ...]]:
    """All possible orders of a walk."""
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


@pytest.fixture
def three_keys() -> Map:
    """A hash with the keys a, b and c."""
    map_ = create(MapType.HASH, 1, 1, 4)
    for key in (b"a", b"b", b"c"):
        map_.update(key, b"!", 0)
    return map_


def test_an_observed_order_is_fixed(three_keys: Map) -> None:
    three_keys.decide(b"c", b"a")
    assert walks(three_keys) == {(b"c", b"a", b"b"), (b"b", b"c", b"a")}
    three_keys.decide(b"a", End.LAST)
    assert walks(three_keys) == {(b"b", b"c", b"a")}
    assert three_keys.next_keys(None) == [b"b"]
    assert three_keys.next_keys(b"none") == [b"b"]


def test_a_walk_is_not_circular(three_keys: Map) -> None:
    three_keys.decide(b"a", b"b")
    assert three_keys.next_keys(b"b") == [b"c", End.LAST]


@pytest.mark.parametrize(
    ("lengths", "left", "offset"),
    [
        pytest.param([12], [12], 4, id="within-a-segment"),
        pytest.param([4, 8], [8], 0, id="to-the-end-of-a-segment"),
        pytest.param([3, 9], [9], 1, id="over-two-segments"),
        pytest.param([1, 1, 1, 1, 8], [8], 0, id="over-many"),
        pytest.param([0, 4, 8], [8], 0, id="empty-segment-before"),
        pytest.param([4, 0, 8], [0, 8], 0, id="empty-segment-after"),
        pytest.param([4], [], 0, id="nothing-left"),
        pytest.param([4, 0], [0], 0, id="only-an-empty-segment"),
    ],
)
def test_iterator_after_the_write_index(lengths: list[int], left: list[int], offset: int) -> None:
    segments = [(0x1000 * number, length) for number, length in enumerate(lengths)]
    rest = IovIter.after(4, segments)
    assert [length for _, length in rest.segments] == left
    assert rest.offset == offset
    # The remaining segments are the last ones.
    assert rest.segments == tuple(segments[len(lengths) - len(left) :])


def test_kernel_memory_is_limited_to_the_context() -> None:
    context = Context(b"", {0x1000: b"abcdef", 0x2000: b"xyz"})
    assert context.read(0x1000, 6) == b"abcdef"
    assert context.read(0x2001, 2) == b"yz"
    for address, length in ((0x1000, 7), (0xFFF, 2), (0x3000, 1)):
        with pytest.raises(NotModelled):
            context.read(address, length)
