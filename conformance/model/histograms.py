"""Histograms of the fields of an event: the trigger `hist` and the file of that name.

Of keys that are numbers or strings and values that are numbers; no variables, expressions,
actions or names.  Source: trace_events_hist.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.model import filters, triggers
from conformance.model.definition import SPACES, Field
from conformance.model.errors import Errno, NotModelled
from conformance.model.filters import Filter

if TYPE_CHECKING:
    from conformance.model.event_state import EventFile
    from conformance.model.events import Event
    from conformance.model.world import World

# The first value of every histogram.
HITCOUNT = "hitcount"
_DEFAULT_BITS = 11
_BITS = range(7, 18)
_MOST_KEYS = 3
_MOST_SORT_KEYS = 2
_MODIFIERS = ("", "hex", "sym", "log2")
_KEY_UNIT = 8
_DYNAMIC_KEY = 256
# What is no symbol of the kernel however it was built.
_NO_SYMBOL = 4096
# " if " in front of a filter, which needs something behind it.
_CONDITION = re.compile(r"[ \t]if[ \t]")
_UNMODELLED = ("name=", "clock=", "onmatch(", "onmax(", "onchange(")


@dataclass(frozen=True, slots=True)
class Part:
    """A key or value: a field and how it is shown; ``field`` None is the hitcount."""

    field: Field | None
    modifier: str = ""
    buckets: int = 0

    @property
    def name(self) -> str:
        """hist_field_name()"""
        return HITCOUNT if self.field is None else self.field.name

    @property
    def text(self) -> str:
        """hist_field_print()"""
        if self.buckets:
            return f"{self.name}.buckets={self.buckets}"
        return f"{self.name}.{self.modifier}" if self.modifier else self.name

    def value(self, record: bytes) -> int | bytes:
        """What of a record is counted, added up or looked up."""
        if self.field is None:
            return 1
        raw = record[self.field.offset : self.field.offset + self.field.size]
        if filters.is_string(self.field):
            return self._string(filters.string_of(self.field, record))
        value = int.from_bytes(raw, "little", signed=self.field.signed)
        if self.modifier == "log2":
            if value <= 0:
                raise NotModelled("the logarithm of what is not positive")
            return (value - 1).bit_length()
        return value // self.buckets * self.buckets if self.buckets else value

    def _string(self, raw: bytes) -> bytes:
        """add_to_key(): what has room in the key, with a NUL behind it."""
        assert self.field is not None
        size = _DYNAMIC_KEY if self.field.is_location else -(-self.field.size // _KEY_UNIT) * 8
        return raw[: size - 1].partition(b"\0")[0]

    def shown(self, value: int | bytes) -> str:
        """hist_trigger_print_key()"""
        if isinstance(value, bytes):
            return f"{self.name}: {value.decode('latin-1'):<50}"
        value %= 1 << 64
        if self.buckets:
            return f"{self.name}: ~ {value}-{value + self.buckets - 1}"
        match self.modifier:
            case "hex":
                return f"{self.name}: {value:x}"
            case "log2":
                return f"{self.name}: ~ 2^{value:<2}"
            case "sym":
                if value >= _NO_SYMBOL:
                    raise NotModelled("a value that may be a symbol")
                return f"{self.name}: [{value:x}] {f'{value:#x}':<45}"
        return f"{self.name}: {value:>10}"


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key: a part of the entry, and the direction."""

    part: Part
    descending: bool

    @property
    def text(self) -> str:
        """As the definition shows it."""
        return self.part.text + (".descending" if self.descending else "")


@dataclass(slots=True, eq=False)
class Histogram:
    """struct hist_trigger_data and its map.  ``entries`` are the sums by key."""

    keys: tuple[Part, ...]
    values: tuple[Part, ...]
    orders: tuple[Order, ...]
    bits: int
    entries: dict[tuple[int | bytes, ...], list[int]] = field(default_factory=dict)
    hits: int = 0
    drops: int = 0

    def is_like(self, other: Histogram) -> bool:
        """hist_trigger_match(), which does not compare the size."""
        mine = (self.keys, self.values, self.orders)
        return mine == (other.keys, other.values, other.orders)

    def definition(self, condition: Filter | None, *, paused: bool) -> str:
        """event_hist_trigger_print()"""
        keys, values, orders = (
            ",".join(part.text for part in parts) for parts in (self.keys, self.values, self.orders)
        )
        text = f"hist:keys={keys}:vals={values}:sort={orders}:size={1 << self.bits}"
        text += f" if {condition.text}" if condition else ""
        return f"{text} [{'paused' if paused else 'active'}]\n"

    def add(self, record: bytes) -> None:
        """event_hist_trigger()"""
        key = tuple(part.value(record) for part in self.keys)
        if key not in self.entries and len(self.entries) == 1 << self.bits:
            self.drops += 1
            return
        self.hits += 1
        sums = self.entries.setdefault(key, [0] * len(self.values))
        for index, part in enumerate(self.values):
            value = part.value(record)
            assert isinstance(value, int)
            sums[index] += value

    def clear(self) -> None:
        """hist_clear()"""
        self.entries.clear()
        self.hits = self.drops = 0

    def shown(self, definition: str) -> str:
        """hist_trigger_show()"""
        lines = "".join(map(self._line, self._sorted()))
        return (
            f"# event histogram\n#\n# trigger info: {definition}#\n\n{lines}\n"
            f"Totals:\n    Hits: {self.hits}\n    Entries: {len(self.entries)}\n"
            f"    Dropped: {self.drops}\n"
        )

    def _sorted(self) -> list[tuple[int | bytes, ...]]:
        """tracing_map_sort_entries(), of entries that no two of are equal to."""
        found = list(self.entries)
        ranks = {key: [self._rank(order.part, key) for order in self.orders] for key in found}
        if len({tuple(rank) for rank in ranks.values()}) < len(found):
            raise NotModelled("the order of entries that are equal to the sort keys")
        for index, order in reversed(list(enumerate(self.orders))):
            column = {key: rank[index] for key, rank in ranks.items()}
            found.sort(key=column.__getitem__, reverse=order.descending)
        return found

    def _rank(self, part: Part, key: tuple[int | bytes, ...]) -> int | bytes:
        if part in self.values:
            return self.entries[key][self.values.index(part)]
        return key[self.keys.index(part)]

    def _line(self, key: tuple[int | bytes, ...]) -> str:
        keys = ", ".join(part.shown(each) for part, each in zip(self.keys, key, strict=True))
        sums = self.entries[key]
        values = [
            f" {part.name}: {value % (1 << 64):>10{'x' if part.modifier == 'hex' else ''}}"
            for part, value in zip(self.values, sums, strict=True)
        ]
        return f"{{ {keys} }}{' '.join(values)}\n"


def shown(file: EventFile) -> str:
    """The file `hist`."""
    texts = [
        trigger.histogram.shown(trigger.text)
        for trigger in file.triggers
        if trigger.histogram is not None
    ]
    return "\n\n".join(texts)


def command(world: World, event: Event, file: EventFile, text: str, *, removes: bool) -> None:
    """event_hist_trigger_parse().  Raises Errno."""
    if not text:
        raise Errno("EINVAL")
    found = _CONDITION.search(text)
    condition = text[found.start() + 1 :].strip(SPACES) if found else ""
    words = (text[: found.start()] if found else text).strip(SPACES).split(":")
    wanted = triggers.Trigger("hist", histogram=_parsed(event, world, words))
    if condition:
        wanted.filter = triggers.condition_of(world, event, condition)
    existing = next((each for each in file.triggers if _matches(each, wanted)), None)
    if removes:
        if existing is not None:
            triggers.remove(world, file, existing)
        return
    action = next((word for word in words if word in ("pause", "cont", "continue", "clear")), "")
    if existing is not None:
        _update(existing, action)
        return
    if action and action != "pause":
        raise Errno("ENOENT")
    wanted.paused = action == "pause"
    triggers.add(world, file, wanted, last=True)


def _matches(trigger: triggers.Trigger, other: triggers.Trigger) -> bool:
    if trigger.histogram is None or other.histogram is None:
        return False
    conditions = [each.filter.text if each.filter else "" for each in (trigger, other)]
    return conditions[0] == conditions[1] and trigger.histogram.is_like(other.histogram)


def _update(trigger: triggers.Trigger, action: str) -> None:
    """existing_hist_update_only()"""
    assert trigger.histogram is not None
    if not action:
        raise Errno("EEXIST")
    if action == "clear":
        trigger.histogram.clear()
    else:
        trigger.paused = action == "pause"


def _parsed(event: Event, world: World, words: list[str]) -> Histogram:
    """parse_hist_trigger_attrs(), create_hist_data()."""
    keys: list[str] = []
    values: list[str] = []
    orders: list[str] = []
    bits = _DEFAULT_BITS
    for word in words:
        name, sign, text = word.partition("=")
        if word.startswith(_UNMODELLED):
            raise NotModelled(f"{word!r} of a histogram")
        if sign and not text:
            raise Errno("EINVAL")
        match name:
            case "key" | "keys" if sign:
                keys = text.split(",")
            case "val" | "vals" | "values" if sign:
                values = text.split(",")
            case "sort" if sign:
                orders = text.split(",")
            case "size" if sign:
                bits = _bits(text)
            case "pause" | "cont" | "continue" | "clear" if not sign:
                pass
            case _ if sign:
                raise NotModelled(f"the variable {name!r} of a histogram")
            case _:
                raise Errno("EINVAL")
    if not keys or len(keys) > _MOST_KEYS:
        raise Errno("EINVAL")
    summed = [_part(event, world, each) for each in values if each != HITCOUNT]
    if any(each.field is None or filters.is_string(each.field) for each in summed):
        raise NotModelled("a string that is added up")
    parts = (Part(None), *summed), tuple(_part(event, world, each) for each in keys)
    return Histogram(parts[1], parts[0], _orders(orders, parts[0] + parts[1]), bits)


def _bits(text: str) -> int:
    """parse_map_size()"""
    size = filters.number_in(text)
    if size is None or size < 1 or (size - 1).bit_length() not in _BITS:
        raise Errno("EINVAL")
    return (size - 1).bit_length()


def _part(event: Event, world: World, text: str) -> Part:
    """parse_field(), create_hist_field().  Raises Errno("EINVAL")."""
    name, dot, modifier = text.partition(".")
    if any(character in "$+-*/()" for character in text) or name.startswith("common_"):
        raise NotModelled(f"{text!r} in a histogram")
    buckets = 0
    if modifier.startswith(("buckets=", "bucket=")):
        buckets = filters.number_in(modifier.partition("=")[2]) or 0
        modifier = "" if buckets > 0 else modifier
    if modifier not in _MODIFIERS or (dot and not modifier and not buckets):
        raise Errno("EINVAL")
    found = filters.find_field(event, name)
    if found is None:
        raise Errno("EINVAL")
    if filters.is_string(found):
        if not world.profile.has("remote_enable") or modifier or buckets:
            raise NotModelled("a string that is shown otherwise, or not known to be one")
    elif found.size not in filters.INTEGER_SIZES:
        raise NotModelled(f"a field of {found.size} bytes in a histogram")
    return Part(found, modifier, buckets)


def _orders(texts: list[str], parts: tuple[Part, ...]) -> tuple[Order, ...]:
    """create_sort_keys()"""
    if len(texts) > _MOST_SORT_KEYS:
        raise Errno("EINVAL")
    found = []
    for text in texts or [HITCOUNT]:
        name, _, direction = text.partition(".")
        part = next((part for part in parts if part.name == name), None)
        if part is None or direction not in ("", "ascending", "descending"):
            raise Errno("EINVAL")
        found.append(Order(part, direction == "descending"))
    return tuple(found)
