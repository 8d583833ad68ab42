"""Histograms of the fields of an event: the trigger `hist` and the file of that name.

Of keys that are numbers or strings and values that are numbers; no names and no times.
Source: trace_events_hist.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.model import filters, hist_actions, triggers
from conformance.model.definition import SPACES
from conformance.model.errors import Errno, NotModelled
from conformance.model.filters import Filter
from conformance.model.hist_actions import Action
from conformance.model.hist_parser import Parser
from conformance.model.hist_values import (
    HITCOUNT,
    Expression,
    Part,
    Reference,
    Value,
    Variable,
    alike,
    evaluate,
)

if TYPE_CHECKING:
    from conformance.model.event_state import EventFile
    from conformance.model.events import Event
    from conformance.model.world import World

_DEFAULT_BITS = 11
_BITS = range(7, 18)
_MOST_KEYS = 3
_MOST_VALUES = 2
_MOST_SORT_KEYS = 2
# How long the bar of a value is that is shown as one.
_BAR = 20
# " if " in front of a filter, which needs something behind it.
_CONDITION = re.compile(r"[ \t]if[ \t]")
_UNMODELLED = ("name=", "clock=", "nohitcount", "NOHC")

Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key: a part of the entry, and the direction."""

    part: Part | Reference
    descending: bool

    @property
    def text(self) -> str:
        """As the definition shows it."""
        return self.part.text + (".descending" if self.descending else "")


@dataclass(slots=True, eq=False)
class Histogram:
    """struct hist_trigger_data and its map.

    ``entries`` are the sums by key, ``kept`` the values of its variables, ``references`` those of
    others that it reads.
    """

    keys: tuple[Part, ...]
    values: tuple[Expression, ...]
    orders: tuple[Order, ...]
    bits: int
    variables: tuple[Variable, ...] = ()
    actions: tuple[Action, ...] = ()
    references: list[Reference] = field(default_factory=list)
    entries: dict[Key, list[int]] = field(default_factory=dict)
    kept: dict[Key, dict[str, Value]] = field(default_factory=dict)
    hits: int = 0
    drops: int = 0

    def variable(self, name: str) -> Variable:
        """A variable that it defines."""
        return next(each for each in self.variables if each.name == name)

    def is_like(self, other: Histogram) -> bool:
        """hist_trigger_match(), which does not compare the size."""
        values = len(self.values) == len(other.values) and all(
            map(alike, self.values, other.values)
        )
        variables = len(self.variables) == len(other.variables) and all(
            map(Variable.is_like, self.variables, other.variables)
        )
        actions = [each.text for each in self.actions] == [each.text for each in other.actions]
        same = (self.keys, self.orders) == (other.keys, other.orders)
        return values and variables and actions and same

    def definition(self, condition: Filter | None, *, paused: bool) -> str:
        """event_hist_trigger_print()"""
        keys, values, orders = (
            ",".join(part.text for part in parts) for parts in (self.keys, self.values, self.orders)
        )
        variables = ":" + ",".join(each.text for each in self.variables) if self.variables else ""
        text = f"hist:keys={keys}:vals={values}{variables}:sort={orders}:size={1 << self.bits}"
        text += "".join(each.text for each in self.actions)
        text += f" if {condition.text}" if condition else ""
        return f"{text} [{'paused' if paused else 'active'}]\n"

    def add(self, world: World, record: bytes) -> None:
        """event_hist_trigger()"""
        key = tuple(part.value(record) for part in self.keys)
        read = self._read(key)
        if read is None:
            return
        if key not in self.entries and len(self.entries) == 1 << self.bits:
            self.drops += 1
            return
        self.hits += 1
        sums = self.entries.setdefault(key, [0] * len(self.values))
        for index, part in enumerate(self.values):
            value = evaluate(part, record, read)
            if isinstance(value, bytes):
                raise NotModelled("where the text of a variable lies")
            sums[index] += value
        kept = self.kept.setdefault(key, {})
        for variable in self.variables:
            kept[variable.name] = evaluate(variable.value, record, read)
        for action in self.actions:
            action.perform(world, key, record, kept, read)

    def _read(self, key: Key) -> dict[Reference, Value] | None:
        """resolve_var_refs(): None where a variable has no value for the key."""
        read: dict[Reference, Value] = {}
        for reference in self.references:
            kept = reference.histogram.kept.get(key, {})
            if reference.name not in kept:
                return None
            read[reference] = kept[reference.name]
            if reference.once:
                del kept[reference.name]
        return read

    def clear(self) -> None:
        """hist_clear()"""
        self.entries.clear()
        self.kept.clear()
        for action in self.actions:
            action.clear()
        self.hits = self.drops = 0

    def shown(self, definition: str) -> str:
        """hist_trigger_show()"""
        lines = "".join(map(self._line, self._sorted()))
        return (
            f"# event histogram\n#\n# trigger info: {definition}#\n\n{lines}\n"
            f"Totals:\n    Hits: {self.hits}\n    Entries: {len(self.entries)}\n"
            f"    Dropped: {self.drops}\n"
        )

    def _sorted(self) -> list[Key]:
        """tracing_map_sort_entries(), of entries that no two of are equal to."""
        found = list(self.entries)
        ranks = {key: [self._rank(order.part, key) for order in self.orders] for key in found}
        if len({tuple(rank) for rank in ranks.values()}) < len(found):
            raise NotModelled("the order of entries that are equal to the sort keys")
        for index, order in reversed(list(enumerate(self.orders))):
            column = {key: rank[index] for key, rank in ranks.items()}
            found.sort(key=column.__getitem__, reverse=order.descending)
        return found

    def _rank(self, part: Part | Reference, key: Key) -> Value:
        if part in self.values:
            return self.entries[key][self.values.index(part)]
        assert isinstance(part, Part)
        return key[self.keys.index(part)]

    def _line(self, key: Key) -> str:
        keys = ", ".join(part.shown(each) for part, each in zip(self.keys, key, strict=True))
        values = [
            f" {self._sum(part, index, sums)}"
            for index, (part, sums) in enumerate(zip(self.values, self.entries[key], strict=True))
            # Sums of several things are kept, and never shown.
            if isinstance(part, Part | Reference)
        ]
        tracked = "".join(action.shown(key) for action in self.actions)
        return f"{{ {keys} }}{' '.join(values)}{tracked}\n"

    def _sum(self, part: Part | Reference, index: int, value: int) -> str:
        """hist_trigger_print_val()"""
        column = [sums[index] for sums in self.entries.values()]
        modifier = part.modifier if isinstance(part, Part) else ""
        match modifier:
            case "percent":
                hundredths = value * 10000 // sum(column) if sum(column) else 0
                return f"{part.name} (%): {hundredths // 100:>3}.{hundredths % 100:02}"
            case "graph":
                length = value * 10000 // max(column) * _BAR // 10000 if max(column) else 0
                return f"{part.name}: {'#' * length:<20}"
        return f"{part.name}: {value % (1 << 64):>10{'x' if modifier == 'hex' else ''}}"


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
    parser = Parser(world, event, file, text)
    if not text:
        raise Errno("EINVAL")
    found = _CONDITION.search(text)
    condition = text[found.start() + 1 :].strip(SPACES) if found else ""
    words = (text[: found.start()] if found else text).strip(SPACES).split(":")
    wanted = triggers.Trigger("hist", histogram=_parsed(parser, world, words, removes=removes))
    if condition:
        wanted.filter = triggers.condition_of(world, event, file, condition)
    existing = next((each for each in file.triggers if _matches(each, wanted)), None)
    if removes:
        if existing is not None:
            if is_referenced(world, file, existing):
                raise Errno("EBUSY")
            triggers.remove(world, file, existing)
        return
    action = next((word for word in words if word in ("pause", "cont", "continue", "clear")), "")
    if existing is not None:
        if not action:
            parser.refuse("Hist trigger already exists", errno="EEXIST")
        _update(existing, action)
        return
    assert wanted.histogram is not None
    hist_actions.prepare(parser, world, wanted.histogram)
    if action and action != "pause":
        parser.refuse("Can't clear or continue a nonexistent hist trigger", errno="ENOENT")
    wanted.paused = action == "pause"
    triggers.add(world, file, wanted, last=True)


def is_referenced(world: World, file: EventFile, trigger: triggers.Trigger) -> bool:
    """check_var_refs(): whether another histogram of the instance reads one of its variables."""
    files = [event.files.get(file.instance) for event in world.table.events]
    others = [each.histogram for each_file in files if each_file for each in each_file.triggers]
    return any(
        reference.histogram is trigger.histogram
        for other in others
        if other is not None and other is not trigger.histogram
        for reference in other.references
    )


def remove_all(world: World, file: EventFile) -> None:
    """hist_unreg_all(): all histograms of an event, or none where one is referred to."""
    found = [each for each in file.triggers if each.histogram is not None]
    if any(is_referenced(world, file, each) for each in found):
        return
    for each in found:
        triggers.remove(world, file, each)


def _matches(trigger: triggers.Trigger, other: triggers.Trigger) -> bool:
    if trigger.histogram is None or other.histogram is None:
        return False
    conditions = [each.filter.text if each.filter else "" for each in (trigger, other)]
    return conditions[0] == conditions[1] and trigger.histogram.is_like(other.histogram)


def _update(trigger: triggers.Trigger, action: str) -> None:
    """existing_hist_update_only()"""
    assert trigger.histogram is not None
    if action == "clear":
        trigger.histogram.clear()
    else:
        trigger.paused = action == "pause"


def _parsed(parser: Parser, world: World, words: list[str], *, removes: bool) -> Histogram:
    """parse_hist_trigger_attrs(), create_hist_data()."""
    keys: list[str] = []
    values: list[str] = []
    orders: list[str] | None = None
    assignments: list[str] = []
    actions: list[str] = []
    bits = _DEFAULT_BITS
    for word in words:
        name, sign, text = word.partition("=")
        if word.startswith(_UNMODELLED):
            raise NotModelled(f"{word!r} of a histogram")
        if sign and not text:
            parser.refuse("Empty assignment", word)
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
            case _ if not sign and word.startswith(hist_actions.HANDLERS):
                actions.append(word)
            case _ if sign:
                assignments.append(word)
                parser.check_number(assignments)
            case _:
                raise Errno("EINVAL")
    if not keys:
        raise Errno("EINVAL")
    acting = tuple(hist_actions.parsed(parser, world, each) for each in actions)
    parser.define(assignments)
    summed = [each for each in values if each != HITCOUNT]
    parsed = tuple(parser.value(each) for each in summed[:_MOST_VALUES])
    if len(summed) > _MOST_VALUES or len(values) - len(summed) > 1:
        raise NotModelled("more values than two")
    if any(isinstance(each, Part) and each.is_string for each in parsed):
        raise NotModelled("a string that is added up")
    variables = parser.variables(removes=removes)
    parts = tuple(parser.key(each) for each in keys[:_MOST_KEYS])
    if len(keys) > _MOST_KEYS:
        raise Errno("EINVAL")
    sums: tuple[Expression, ...] = (Part(None), *parsed)
    found = _orders(parser, orders, (*sums, *parts))
    return Histogram(parts, sums, found, bits, variables, acting, parser.references)


def _bits(text: str) -> int:
    """parse_map_size()"""
    size = filters.number_in(text)
    if size is None or size < 1 or (size - 1).bit_length() not in _BITS:
        raise Errno("EINVAL")
    return (size - 1).bit_length()


def _orders(
    parser: Parser, texts: list[str] | None, parts: tuple[Expression, ...]
) -> tuple[Order, ...]:
    """create_sort_keys()"""
    found = []
    for index, text in enumerate([HITCOUNT] if texts is None else texts):
        if not text:
            parser.refuse("Empty sort field", "sort=")
        if index == _MOST_SORT_KEYS - 1 and texts and len(texts) > _MOST_SORT_KEYS:
            parser.refuse("Too many sort fields (Max = 2)", "sort=")
        name, dot, direction = text.partition(".")
        if not name:
            parser.refuse("Empty sort field", "sort=")
        known = (part for part in parts if isinstance(part, Part | Reference))
        part = next((part for part in known if part.name == name), None)
        if part is None:
            parser.refuse("Sort field must be a key or a val", name)
        if dot and direction not in ("ascending", "descending"):
            parser.refuse("Invalid sort modifier", direction)
        found.append(Order(part, direction == "descending"))
    return tuple(found)
