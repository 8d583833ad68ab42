"""eBPF maps: hashes and arrays.

The order of a hash is unspecified: every step that is observed fixes a part of it until the map
changes.  Source: kernel/bpf/hashtab.c, kernel/bpf/arraymap.c.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum

from conformance.abi.bpf import BPF_EXIST, BPF_NOEXIST, MapType
from conformance.model.errors import Errno, NotModelled

_KEY = struct.Struct("<I")
# The kernel may lack memory for larger maps, and the limit differs by release.
_MODELLED_SIZE = 1 << 20
# No release has this many types.
_NO_TYPE = 1000
_INT_MAX = (1 << 31) - 1


class End(Enum):
    """The ends of a walk through a hash."""

    FIRST = "before the first"
    LAST = "behind the last"


Position = bytes | End


@dataclass(slots=True, eq=False)
class Map:
    """A map; ``values`` of an array has all elements from the start.

    ``following`` is the known part of the order of a hash: the key after a key.
    """

    kind: MapType
    key_size: int
    value_size: int
    max_entries: int
    values: dict[bytes, bytearray] = field(default_factory=dict)
    following: dict[Position, Position] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """Whether keys are the numbers below ``max_entries``."""
        return self.kind is MapType.ARRAY

    def lookup(self, key: bytes) -> bytearray | None:
        """The value of a key, shared by all lookups."""
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
        # The element is replaced; pointers from earlier lookups keep the old value.
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

    def next_keys(self, key: bytes | None) -> list[Position]:
        """The keys or the end that may follow a key; None and unknown keys are at the start."""
        if self.is_array:
            return [self._next_index(key)]
        position = self._position(key)
        if position in self.following:
            return [self.following[position]]
        places: list[Position] = [*self.values, End.LAST]
        return [each for each in places if self._may_follow(position, each)]

    def _position(self, key: bytes | None) -> Position:
        return key if key is not None and key in self.values else End.FIRST

    def _next_index(self, key: bytes | None) -> Position:
        index = 0 if key is None or key not in self.values else _KEY.unpack(key)[0] + 1
        return End.LAST if index == self.max_entries else _KEY.pack(index)

    def _may_follow(self, position: Position, key: Position) -> bool:
        """Whether a complete order exists with the known steps and this one."""
        if key in self.following.values():
            return False
        links = {**self.following, position: key}
        reached = [End.FIRST, *self._walk(End.FIRST, links)]
        if reached[-1] is End.LAST:
            return len(reached) == len(self.values) + 2
        return all(each not in self._walk(each, links) for each in links)

    def _walk(self, position: Position, links: dict[Position, Position]) -> list[Position]:
        """The known steps from a position, once around a circle."""
        walked: list[Position] = []
        while position in links and len(walked) <= len(links):
            position = links[position]
            walked.append(position)
        return walked

    def decide(self, key: bytes | None, following: Position) -> None:
        """Fix the key that follows."""
        if not self.is_array:
            self.following[self._position(key)] = following


def create(kind: int, key_size: int, value_size: int, max_entries: int) -> Map:
    """map_create().  Raises Errno, NotModelled for other map types."""
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
        raise NotModelled("a map of more than 1 MiB")
    map_ = Map(MapType(kind), key_size, value_size, max_entries)
    if map_.is_array:
        map_.values = {_KEY.pack(index): bytearray(value_size) for index in range(max_entries)}
    return map_
