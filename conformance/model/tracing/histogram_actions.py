"""Parsing of histogram actions: onmatch, onmax, onchange; save and trace.

Source: trace_events_hist.c:action_parse, trace_action_create, track_data_create, ontrack_action.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.histogram import SAVE, TRACE, Action, Histogram, Source
from conformance.model.state.histogram_values import (
    Constant,
    Expression,
    HistField,
    Operation,
    VariableReference,
)
from conformance.model.state.world import World
from conformance.model.text import filters
from conformance.model.tracing.histogram_parser import Parser

HANDLERS = ("onmatch(", "onmax(", "onchange(")
_ACTION = re.compile(r"(onmatch|onmax|onchange)\(([^)]*)\)(.*)", re.DOTALL)
_CALL = re.compile(r"[^.]*\.([^(]*)\(([^)]*)(\)?.*)", re.DOTALL)
_SIZE_OF_SUM = 8


def parsed(parser: Parser, world: World, text: str) -> Action:
    """onmatch_parse(), track_data_parse(), action_parse()."""
    found = _ACTION.fullmatch(text)
    if found is None:
        handler, _, rest = text.partition("(")
        if handler == "onmatch":
            parser.refuse("No closing paren found", rest)
        raise Errno("EINVAL")
    handler, about, behind = found.groups()
    if handler == "onmatch":
        system, dot, name = about.partition(".")
        if not dot:
            parser.refuse("Missing subsystem", system)
        try:
            world.table.tracepoint(system, name)
        except Errno:
            parser.refuse("Invalid subsystem or event name", name)
    call = _CALL.fullmatch(behind)
    if call is None:
        parser.refuse("No action found")
    word, inside, _ = call.groups()
    parameters = tuple(each.strip() for each in inside.split(","))
    for each in parameters:
        if not each or (len(each) == 1 and not world.profile.fixed("action-param-one-letter")):
            parser.refuse("Invalid action param", each)
    if word.startswith(SAVE) and handler == "onmatch":
        parser.refuse("Handler doesn't support action", word)
    if word.startswith("snapshot") or (
        word.startswith((SAVE, TRACE)) and word not in (SAVE, TRACE)
    ):
        raise NotModelled(f"the action {word}")
    return Action(handler, about, word, parameters)


def prepare(parser: Parser, world: World, histogram: Histogram) -> None:
    """create_actions()"""
    for action in histogram.actions:
        if action.handler != "onmatch":
            _track(parser, histogram, action)
        if action.name == SAVE:
            _prepare_saving(parser, histogram, action)
        else:
            _prepare_recording(parser, world, histogram, action)


def _track(parser: Parser, histogram: Histogram, action: Action) -> None:
    """track_data_create()"""
    if not action.subject.startswith("$"):
        parser.refuse("For onmax(x) or onchange(x), x must be a variable", action.subject)
    if all(each.name != action.subject[1:] for each in histogram.table.variables):
        parser.refuse("Couldn't find onmax or onchange variable", action.subject[1:])


def _prepare_saving(parser: Parser, histogram: Histogram, action: Action) -> None:
    before = histogram.actions[: histogram.actions.index(action)]
    if any(each.name == SAVE for each in before):
        parser.refuse("Can't have more than one save() action per hist", errno="EEXIST")
    for name in action.parameters:
        try:
            action.sources.append(parser.field(name))
        except Errno:
            parser.log("Couldn't parse field variable", name)
            parser.refuse("Couldn't create field variable", name)


def _prepare_recording(parser: Parser, world: World, histogram: Histogram, action: Action) -> None:
    """trace_action_create()"""
    names = action.parameters
    event_name, names = (names[0], names[1:]) if action.name == TRACE else (action.name, names)
    event = world.synthetic_events.get(event_name)
    if event is None:
        parser.refuse("Couldn't find synthetic event", event_name)
    for place, name in enumerate(names):
        source, like = _source(parser, histogram, action, name)
        if place >= len(event.fields) or not event.fields[place].takes(*like[:2], signed=like[2]):
            parser.refuse("Param type doesn't match synthetic event field type", name)
        action.sources.append(source)
    if len(names) != len(event.fields):
        parser.refuse("Param count doesn't match synthetic event field count", event.name)
    action.event = event


def _source(
    parser: Parser, histogram: Histogram, action: Action, name: str
) -> tuple[Source, tuple[str, int, bool]]:
    """trace_action_find_var(), trace_action_create_field_var(): a source and its type."""
    if name.count("."):
        raise NotModelled(f"the parameter {name}")
    if not name.startswith("$"):
        part = parser.field(name)
        return part, _kind(part)
    own = next((each for each in histogram.table.variables if each.name == name[1:]), None)
    if own is not None:
        return own.name, _kind(own.value)
    place = action.subject if action.handler == "onmatch" else ""
    other = parser.find(place, name[1:])
    if other is None:
        parser.refuse("Couldn't find param", name[1:])
    return parser.refer(other, name[1:]), _kind(other.find(name[1:]).value)


def _kind(value: Expression) -> tuple[str, int, bool]:
    """Type, size in bytes and sign of a value (create_hist_field, parse_expr)."""
    match value:
        case HistField(field=found) if found is not None:
            kind = "char[]" if filters.is_string(found) else found.type
            return kind, found.size, found.signed
        case Constant():
            return "u64", _SIZE_OF_SUM, False
        case Operation(left=left):
            return _kind(left)
        case VariableReference():
            return _kind(value.table.find(value.name).value)
    return "u64", _SIZE_OF_SUM, False
