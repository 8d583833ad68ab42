"""What a program stored in the memory of its processes, and which later call reads it."""

from __future__ import annotations

from collections.abc import Iterator

# Bytes of one store that are remembered: no structure or definition is longer.
_MOST = 4096


class Memory:
    """The memory of all actors, by address; ``shown`` numbers the stores whose bytes were read."""

    def __init__(self) -> None:
        self.shown: set[int] = set()
        self._stored: dict[str, dict[int, tuple[int, int]]] = {}
        self._labels: dict[tuple[str, int], tuple[str, int]] = {}

    def store(self, actor: str, address: int, data: bytes, step: int) -> None:
        """Step ``step`` stored these bytes."""
        space = self._stored.setdefault(actor, {})
        space.update((address + place, (byte, step)) for place, byte in enumerate(data[:_MOST]))

    def label(self, actor: str, address: int, text: str, step: int) -> None:
        """Step ``step`` stored a number that is known by a description only."""
        self._labels[actor, address] = text, step

    def copy(self, parent: str, child: str, *, shared: bool) -> None:
        """The child of a fork has the parent's memory, that of CLONE_VM shares it."""
        space = self._stored.setdefault(parent, {})
        self._stored[child] = space if shared else dict(space)

    def load(self, actor: str, address: int, length: int) -> bytes | None:
        """Bytes of the program, None if it did not store all of them."""
        return self._taken(list(self._bytes(actor, address, length)), length)

    def string(self, actor: str, address: int) -> bytes | None:
        """The C string at an address without its end, None if its end is not known."""
        found: list[tuple[int, int]] = []
        for byte, step in self._bytes(actor, address, _MOST):
            if not byte:
                self.shown.add(step)
                return self._taken(found, len(found))
            found.append((byte, step))
        return None

    def labelled(self, actor: str, address: int) -> str:
        """The description of the number at an address, "" for other memory."""
        text, step = self._labels.get((actor, address), ("", 0))
        if text:
            self.shown.add(step)
        return text

    def _bytes(self, actor: str, address: int, length: int) -> Iterator[tuple[int, int]]:
        space = self._stored.get(actor, {})
        for place in range(address, address + min(length, _MOST)):
            if place not in space:
                return
            yield space[place]

    def _taken(self, found: list[tuple[int, int]], length: int) -> bytes | None:
        if len(found) < length:
            return None
        self.shown.update(step for _, step in found)
        return bytes(byte for byte, _ in found)
