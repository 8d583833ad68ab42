"""eBPF maps: hashes and arrays, as both user space and programs see them.

Source: kernel/bpf/hashtab.c, kernel/bpf/arraymap.c.  The order in which a hash is walked
is left open: it is decided step by step as it is seen, and stays until the map changes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum

from conformance.abi.bpf import BPF_EXIST, BPF_NOEXIST, MapType
from conformance.model.errors import Errno, NotModelled

_KEY = struct.Struct("<I")
# Beyond this many bytes memory may be short, and what is too much differs by release.
_MODELLED_SIZE = 1 << 20
# No release has so many types.
_NO_TYPE = 1000
_INT_MAX = (1 << 31) - 1


class End(Enum):
    """The ends of the order in which a hash is walked."""

    FIRST = "before the first"
    LAST = "behind the last"


Place = bytes | End


@dataclass(slots=True, eq=False)
class Map:
    """A map.  ``values`` holds what is in it, the elements of an array from the start.

    ``following`` is what is known of a hash's order: the key behind a key.
    """

    kind: MapType
    key_size: int
    value_size: int
    max_entries: int
    values: dict[bytes, bytearray] = field(default_factory=dict)
    following: dict[Place, Place] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """Whether its keys are the numbers below ``max_entries``."""
        return self.kind is MapType.ARRAY

    def lookup(self, key: bytes) -> bytearray | None:
        """The value of a key, which is shared with everybody who looked it up."""
        return self.values.get(key)

    def update(self, key: bytes, value: bytes, flags: int) -> None:
        """map_update_elem.  Raises Errno."""
        if flags > BPF_EXIST:
            raise Errno("EINVAL")
        if self.is_array:
            self._update_array(key, value, flags)
            return
        if key in self.values and flags == BPF_NOEXIST:
            raise Errno("EEXIST")
        if key not in self.values and flags == BPF_EXIST:
            raise Errno("ENOENT")
        if key not in self.values and len(self.values) == self.max_entries:
            raise Errno("E2BIG")
        # Another element takes the old one's place: who looked that up keeps it.
        self.values[key] = bytearray(value)
        self.following.clear()

    def _update_array(self, key: bytes, value: bytes, flags: int) -> None:
        if key not in self.values:
            raise Errno("E2BIG")
        if flags == BPF_NOEXIST:
            raise Errno("EEXIST")
        self.values[key][:] = value

    def delete(self, key: bytes) -> None:
        """map_delete_elem.  Raises Errno."""
        if self.is_array:
            raise Errno("EINVAL")
        if key not in self.values:
            raise Errno("ENOENT")
        del self.values[key]
        self.following.clear()

    # Walking

    def next_keys(self, key: bytes | None) -> list[Place]:
        """What may follow a key: keys, or the end.  None and unknown keys are before the first."""
        if self.is_array:
            return [self._next_index(key)]
        place: Place = key if key is not None and key in self.values else End.FIRST
        if place in self.following:
            return [self.following[place]]
        places: list[Place] = [*self.values, End.LAST]
        return [each for each in places if self._may_follow(place, each)]

    def _next_index(self, key: bytes | None) -> Place:
        index = 0 if key is None else _KEY.unpack(key)[0] + 1
        if key is not None and key not in self.values:
            index = 0
        return End.LAST if index == self.max_entries else _KEY.pack(index)

    def _may_follow(self, place: Place, key: Place) -> bool:
        """Whether some order of all keys has what is known, and this."""
        if key in self.following.values():
            return False
        links = {**self.following, place: key}
        reached = [End.FIRST, *self._walk(End.FIRST, links)]
        if reached[-1] is End.LAST:
            return len(reached) == len(self.values) + 2
        return all(each not in self._walk(each, links) for each in links)

    def _walk(self, place: Place, links: dict[Place, Place]) -> list[Place]:
        """What follows a place, as far as it is known, once around a circle."""
        walked: list[Place] = []
        while place in links and len(walked) <= len(links):
            place = links[place]
            walked.append(place)
        return walked

    def decide(self, key: bytes | None, following: Place) -> None:
        """From now on this is what follows a key."""
        if not self.is_array:
            place = key if key is not None and key in self.values else End.FIRST
            self.following[place] = following


def create(kind: int, key_size: int, value_size: int, max_entries: int) -> Map:
    """map_create() with the checks of its kind.  Raises Errno, NotModelled for other kinds."""
    if kind == MapType.UNSPEC or kind >= _NO_TYPE:
        raise Errno("EINVAL")
    if kind not in tuple(MapType):
        raise NotModelled(f"map of type {kind}")
    if 0 in (key_size, value_size, max_entries):
        raise Errno("EINVAL")
    if kind == MapType.ARRAY:
        if key_size != _KEY.size:
            raise Errno("EINVAL")
        if value_size > _INT_MAX:
            raise Errno("E2BIG")
    elif key_size + value_size > _INT_MAX:
        raise Errno("E2BIG")
    if (key_size + value_size) * max_entries > _MODELLED_SIZE:
        raise NotModelled("a map that is large")
    made = Map(MapType(kind), key_size, value_size, max_entries)
    if made.is_array:
        made.values = {_KEY.pack(index): bytearray(value_size) for index in range(max_entries)}
    return made
