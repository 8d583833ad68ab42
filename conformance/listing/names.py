"""Names in a listing: of events, descriptors and addresses that the harness chose."""

from __future__ import annotations

import re
from bisect import bisect_right

from conformance import ops
from conformance.client.addresses import (
    ATTR,
    BUFFER,
    FREE,
    GUARD,
    GUARD_LENGTH,
    PAGE,
    SCRATCH,
    SCRATCH_LENGTH,
    STRING,
    STRUCT,
    WORD_SPACING,
    WORDS,
    is_guarded,
)
from conformance.client.tracefs import ROOT

# Generated names such as t00012_e (client.user_events.UserEvents.prefix).
# In a C string they may follow an escape sequence: "a\\nt00012_e".
_GENERATED = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\\[nt]))t\d{5}_(e\b)?", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:\([\w ]+ \*\))?0x([0-9a-f]{9,16})\b")
_SLOT = re.compile(r"\bfd(\d+)\b")
# The file whose descriptor is just fd.
_DATA = "user_events_data"
_GUARDS = bytes([GUARD]) * GUARD_LENGTH
_BUFFERS = {STRUCT: "&reg", STRING: "name", ATTR: "&attr", BUFFER: "buffer"}


def plain_names(text: str) -> str:
    """A text with the prefix of generated names dropped; the usual event ``e`` becomes ``e1``."""
    return _GENERATED.sub(lambda found: "e1" if found[1] else "", text)


class Names:
    """The names that a program uses for descriptors and addresses, in order of appearance."""

    def __init__(self) -> None:
        self._descriptors: dict[tuple[str, int], str] = {}
        self._mappings: dict[int, tuple[int, str]] = {}
        self._words: dict[int, int] = {}

    def opened(self, actor: str, slot: int, path: str = "", kind: str = "") -> str:
        """Name a descriptor by the file that it was opened from."""
        file = path.rpartition("/")[2].removeprefix("user_events_")
        kind = kind or (f"{file}_fd" if file.isidentifier() else "file_fd")
        kind = "fd" if path.endswith(f"/{_DATA}") else kind
        taken = {name for (owner, _), name in self._descriptors.items() if owner == actor}
        self._descriptors[actor, slot] = _numbered(kind, taken)
        return self._descriptors[actor, slot]

    def descriptor(self, actor: str, slot: int) -> str:
        """The name of a descriptor."""
        return self._descriptors.get((actor, slot), f"fd{slot}")

    def is_data(self, actor: str, slot: int) -> bool:
        """Whether a descriptor is one of user_events_data."""
        name = self._descriptors.get((actor, slot), "")
        return re.fullmatch(r"fd\d*", name) is not None

    def inherit(self, parent: str, child: str) -> None:
        """A child has its parent's descriptors."""
        for (actor, slot), name in list(self._descriptors.items()):
            if actor == parent:
                self._descriptors[child, slot] = name

    def mapped(self, address: int, length: int, kind: str = "page") -> str:
        """Name a mapping."""
        if address not in self._mappings:
            taken = {name for _, name in self._mappings.values()}
            self._mappings[address] = length, _numbered(kind, taken)
        return self._mappings[address][1]

    def pointer(self, address: int) -> str:
        """An address as C: a variable or an offset into one, else a number."""
        if address == 0:
            return "NULL"
        if is_guarded(address):
            return _offset(*self._word(address))
        if SCRATCH <= address < SCRATCH + SCRATCH_LENGTH:
            start = max(each for each in _BUFFERS if each <= address)
            return _offset(_BUFFERS[start], address - start)
        starts = sorted(self._mappings)
        if address >= FREE and (place := bisect_right(starts, address)):
            start = starts[place - 1]
            length, name = self._mappings[start]
            # A guard page follows each mapping.
            if address - start < length + PAGE:
                return f"{name} + {address - start:#x}" if address > start else name
        return f"{address:#x}"

    def memory(self, address: int) -> str:
        """Watched memory as a noun: ``word``, or ``page + 0x10``."""
        return self.pointer(address).removeprefix("&")

    def in_text(self, actor: str, text: str) -> str:
        """A text with descriptors, addresses, paths and events replaced by their names."""
        text = _SLOT.sub(lambda found: self.descriptor(actor, int(found[1])), text)
        text = _ADDRESS.sub(lambda found: self.pointer(int(found[1], 16)), text)
        return plain_names(text.replace(f"{ROOT}/", ""))

    def _word(self, address: int) -> tuple[str, int]:
        place, offset = divmod(address - WORDS, WORD_SPACING)
        number = self._words.setdefault(place, len(self._words) + 1)
        return f"&word{'' if number == 1 else number}", offset


def without_guards(address: int, content: bytes) -> tuple[int, bytes]:
    """Address and content of an enable word whose guards are as they were; else unchanged."""
    inside = content[GUARD_LENGTH:-GUARD_LENGTH]
    if is_guarded(address) and content == _GUARDS + inside + _GUARDS:
        return address + GUARD_LENGTH, inside
    return address, content


def is_fresh_word(operation: ops.Operation) -> bool:
    """Whether an operation sets an enable word and its guards up, with value 0."""
    if not isinstance(operation, ops.Store):
        return False
    address, content = without_guards(operation.address, operation.data)
    return address != operation.address and not any(content)


def is_furniture(operation: ops.Operation) -> bool:
    """Whether an operation is furniture of every program: a process, its two base mappings."""
    if isinstance(operation, ops.Mmap):
        return operation.address in (SCRATCH, WORDS)
    return isinstance(operation, ops.Spawn)


def _numbered(kind: str, taken: set[str]) -> str:
    number = 1
    while (name := f"{kind}{number if number > 1 else ''}") in taken:
        number += 1
    return name


def _offset(name: str, offset: int) -> str:
    if not offset:
        return name
    return f"(char *){name} + {offset}" if name.startswith("&") else f"{name} + {offset:#x}"
