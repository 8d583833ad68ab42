"""The trigger `hist` and the file `hist`: create, remove, pause and clear histograms.

Source: trace_events_hist.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.event_file import EventFile, Trigger
from conformance.model.state.events import Event
from conformance.model.state.histogram import Histogram, SortKey
from conformance.model.state.histogram_values import (
    HITCOUNT,
    Expression,
    HistField,
    VariableReference,
    VariableTable,
)
from conformance.model.state.world import World
from conformance.model.text.definition import SPACES
from conformance.model.text.numbers import number_in
from conformance.model.tracing import histogram_actions, triggers
from conformance.model.tracing.histogram_parser import Parser

_DEFAULT_BITS = 11
_BITS = range(7, 18)
_MAX_KEYS = 3
_MAX_VALUES = 2
_MAX_SORT_KEYS = 2
_UPDATES = frozenset({"pause", "cont", "continue", "clear"})
# " if " before a filter.
_CONDITION = re.compile(r"[ \t]if[ \t]")
_UNMODELLED = ("name=", "clock=", "nohitcount", "NOHC")


def command(world: World, event: Event, file: EventFile, text: str, *, removes: bool) -> None:
    """event_hist_trigger_parse().  Raises Errno."""
    parser = Parser(world, event, file, text)
    if not text:
        raise Errno("EINVAL")
    found = _CONDITION.search(text)
    condition = text[found.start() + 1 :].strip(SPACES) if found else ""
    words = (text[: found.start()] if found else text).strip(SPACES).split(":")
    trigger = Trigger("hist", histogram=_parsed(parser, world, words, removes=removes))
    if condition:
        trigger.filter = triggers.condition_of(world, event, file, condition)
    existing = next((each for each in file.triggers if _matches(each, trigger)), None)
    if removes:
        if existing is not None:
            if is_referenced(world, file, existing):
                raise Errno("EBUSY")
            triggers.remove(world, file, existing)
        return
    action = next((word for word in words if word in _UPDATES), "")
    if existing is not None:
        if not action:
            parser.refuse("Hist trigger already exists", errno="EEXIST")
        _update(existing, action)
        return
    assert trigger.histogram is not None
    parser.check_new(trigger.histogram.table.variables)
    histogram_actions.prepare(parser, world, trigger.histogram)
    if action and action != "pause":
        parser.refuse("Can't clear or continue a nonexistent hist trigger", errno="ENOENT")
    trigger.paused = action == "pause"
    triggers.add(world, file, trigger, last=True)


def is_referenced(world: World, file: EventFile, trigger: Trigger) -> bool:
    """check_var_refs(): whether another histogram of the instance reads a variable of this one."""
    assert trigger.histogram is not None
    table = trigger.histogram.table
    files = [event.files.get(file.instance) for event in world.table.events]
    others = [trigger.histogram for each in files if each for trigger in each.triggers]
    reading = world.profile.has("reading_histogram_busy")
    return any(
        reference.table is table
        for other in others
        if other is not None and other.table is not table and other.is_listed(reading=reading)
        for reference in other.references
    )


def remove_all(world: World, file: EventFile) -> None:
    """hist_unreg_all(): remove all histograms of an event, or none if one is referenced."""
    found = [each for each in file.triggers if each.histogram is not None]
    if any(is_referenced(world, file, each) for each in found):
        return
    for each in found:
        triggers.remove(world, file, each)


def _matches(trigger: Trigger, other: Trigger) -> bool:
    if trigger.histogram is None or other.histogram is None:
        return False
    conditions = [each.filter.text if each.filter else "" for each in (trigger, other)]
    return conditions[0] == conditions[1] and trigger.histogram.matches(other.histogram)


def _update(trigger: Trigger, action: str) -> None:
    """existing_hist_update_only()"""
    assert trigger.histogram is not None
    if action == "clear":
        trigger.histogram.clear()
    else:
        trigger.paused = action == "pause"


@dataclass(slots=True)
class _Attributes:
    """struct hist_trigger_attrs: the texts of one command."""

    keys: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    sort_keys: list[str] | None = None
    assignments: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    bits: int = _DEFAULT_BITS


def _attributes(parser: Parser, words: list[str]) -> _Attributes:
    """parse_hist_trigger_attrs()"""
    found = _Attributes()
    for word in words:
        name, sign, text = word.partition("=")
        if word.startswith(_UNMODELLED):
            raise NotModelled(f"{word!r} of a histogram")
        if sign and not text:
            parser.refuse("Empty assignment", word)
        match name:
            case "key" | "keys" if sign:
                found.keys = text.split(",")
            case "val" | "vals" | "values" if sign:
                found.values = text.split(",")
            case "sort" if sign:
                found.sort_keys = text.split(",")
            case "size" if sign:
                found.bits = _bits(text)
            case _ if word in _UPDATES:
                pass
            case _ if not sign and word.startswith(histogram_actions.HANDLERS):
                found.actions.append(word)
            case _ if sign:
                found.assignments.append(word)
                parser.check_number(found.assignments)
            case _:
                raise Errno("EINVAL")
    if not found.keys:
        raise Errno("EINVAL")
    return found


def _parsed(parser: Parser, world: World, words: list[str], *, removes: bool) -> Histogram:
    """create_hist_data()"""
    texts = _attributes(parser, words)
    actions = tuple(histogram_actions.parsed(parser, world, each) for each in texts.actions)
    parser.define(texts.assignments)
    summed = [each for each in texts.values if each != HITCOUNT]
    values = tuple(parser.value(each) for each in summed[:_MAX_VALUES])
    if len(summed) > _MAX_VALUES or len(texts.values) - len(summed) > 1:
        raise NotModelled("more than two values")
    if any(isinstance(each, HistField) and each.is_string for each in values):
        raise NotModelled("a sum of strings")
    table = VariableTable(parser.variables(removes=removes, updates=not _UPDATES.isdisjoint(words)))
    keys = tuple(parser.key(each) for each in texts.keys[:_MAX_KEYS])
    if len(texts.keys) > _MAX_KEYS:
        raise Errno("EINVAL")
    sums: tuple[Expression, ...] = (HistField(None), *values)
    order = _sort_keys(parser, texts.sort_keys, (*sums, *keys))
    return Histogram(
        world.profile, keys, sums, order, texts.bits, table, actions, parser.references
    )


def _bits(text: str) -> int:
    """parse_map_size()"""
    size = number_in(text)
    if size is None or size < 1 or (size - 1).bit_length() not in _BITS:
        raise Errno("EINVAL")
    return (size - 1).bit_length()


def _sort_keys(
    parser: Parser, texts: list[str] | None, parts: tuple[Expression, ...]
) -> tuple[SortKey, ...]:
    """create_sort_keys()"""
    found = []
    for index, text in enumerate([HITCOUNT] if texts is None else texts):
        if not text:
            parser.refuse("Empty sort field", "sort=")
        if index == _MAX_SORT_KEYS - 1 and texts and len(texts) > _MAX_SORT_KEYS:
            parser.refuse("Too many sort fields (Max = 2)", "sort=")
        name, dot, direction = text.partition(".")
        if not name:
            parser.refuse("Empty sort field", "sort=")
        known = (part for part in parts if isinstance(part, HistField | VariableReference))
        part = next((part for part in known if part.name == name), None)
        if part is None:
            parser.refuse("Sort field must be a key or a val", name)
        if dot and direction not in ("ascending", "descending"):
            parser.refuse("Invalid sort modifier", direction)
        found.append(SortKey(part, direction == "descending"))
    return tuple(found)


def text_of(file: EventFile) -> str:
    """The file `hist`."""
    texts = [
        trigger.histogram.shown(trigger.text)
        for trigger in file.triggers
        if trigger.histogram is not None
    ]
    return "\n\n".join(texts)
