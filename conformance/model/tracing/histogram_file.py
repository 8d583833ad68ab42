"""The trigger `hist` and the file `hist`: create, remove, pause and clear histograms.

Source: trace_events_hist.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re

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
    action = next((word for word in words if word in ("pause", "cont", "continue", "clear")), "")
    if existing is not None:
        if not action:
            parser.refuse("Hist trigger already exists", errno="EEXIST")
        _update(existing, action)
        return
    assert trigger.histogram is not None
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
    others = [each.histogram for each_file in files if each_file for each in each_file.triggers]
    return any(
        reference.table is table
        for other in others
        if other is not None and other.table is not table
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


def _parsed(parser: Parser, world: World, words: list[str], *, removes: bool) -> Histogram:
    """parse_hist_trigger_attrs(), create_hist_data()."""
    keys: list[str] = []
    values: list[str] = []
    sort_keys: list[str] | None = None
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
                sort_keys = text.split(",")
            case "size" if sign:
                bits = _bits(text)
            case "pause" | "cont" | "continue" | "clear" if not sign:
                pass
            case _ if not sign and word.startswith(histogram_actions.HANDLERS):
                actions.append(word)
            case _ if sign:
                assignments.append(word)
                parser.check_number(assignments)
            case _:
                raise Errno("EINVAL")
    if not keys:
        raise Errno("EINVAL")
    acting = tuple(histogram_actions.parsed(parser, world, each) for each in actions)
    parser.define(assignments)
    summed = [each for each in values if each != HITCOUNT]
    parsed = tuple(parser.value(each) for each in summed[:_MAX_VALUES])
    if len(summed) > _MAX_VALUES or len(values) - len(summed) > 1:
        raise NotModelled("more than two values")
    if any(isinstance(each, HistField) and each.is_string for each in parsed):
        raise NotModelled("a sum of strings")
    variables = parser.variables(removes=removes)
    parts = tuple(parser.key(each) for each in keys[:_MAX_KEYS])
    if len(keys) > _MAX_KEYS:
        raise Errno("EINVAL")
    sums: tuple[Expression, ...] = (HistField(None), *parsed)
    found = _orders(parser, sort_keys, (*sums, *parts))
    return Histogram(parts, sums, found, bits, VariableTable(variables), acting, parser.references)


def _bits(text: str) -> int:
    """parse_map_size()"""
    size = number_in(text)
    if size is None or size < 1 or (size - 1).bit_length() not in _BITS:
        raise Errno("EINVAL")
    return (size - 1).bit_length()


def _orders(
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
