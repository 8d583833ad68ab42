"""Triggers: registration, effect, and the text of the file `trigger`.

Source: trace_events_trigger.c, functions named where a rule is applied.
"""

from __future__ import annotations

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.event_file import ENABLING, HIST_ENABLING, EventFile, Trigger
from conformance.model.state.events import Event
from conformance.model.state.trace_instance import Instance
from conformance.model.state.world import World
from conformance.model.text import filter_parser
from conformance.model.text.filter_parser import FilterError
from conformance.model.text.filters import Filter
from conformance.model.tracing.event_files import set_enabled

_SIMPLE = ("traceon", "traceoff", "snapshot", "stacktrace")
# In the order of registration at boot.
KINDS = (*_SIMPLE, *ENABLING, *HIST_ENABLING, "hist")
# The first line of a stack trace; the lines that follow are not compared.
STACK_TRACE = "<stack trace>\n"


def text(file: EventFile) -> str:
    """The text of `trigger`: triggers newest first, or the available ones."""
    lines = [trigger.text for trigger in file.triggers if trigger.kind != "eprobe"]
    return "".join(lines) or f"# Available triggers:\n# {' '.join(KINDS)}\n"


def add(world: World, file: EventFile, trigger: Trigger, *, last: bool = False) -> None:
    """register_trigger(), event_enable_register_trigger()."""
    if trigger.target is not None:
        set_enabled(world, trigger.target, on=True, soft=True)
    instance = world.instances[file.instance]
    if trigger.kind == "snapshot" and instance.snapshot is None:
        instance.snapshot = []
    _count_users(trigger, 1)
    file.triggers.insert(len(file.triggers) if last else 0, trigger)
    if len(file.triggers) == 1:
        set_enabled(world, file, on=True, soft=True)


def remove(world: World, file: EventFile, trigger: Trigger) -> None:
    """try_unregister_trigger(), event_enable_unregister_trigger()."""
    file.triggers.remove(trigger)
    _count_users(trigger, -1)
    if not file.triggers:
        set_enabled(world, file, on=False, soft=True)
    if trigger.target is not None:
        set_enabled(world, trigger.target, on=False, soft=True)


def _count_users(trigger: Trigger, change: int) -> None:
    """Count the users of the synthetic events that a histogram generates."""
    actions = trigger.histogram.actions if trigger.histogram is not None else ()
    for action in actions:
        if action.event is not None:
            action.event.users += change


def condition_of(world: World, event: Event, file: EventFile, text: str) -> Filter:
    """set_trigger_filter(): "if" and a filter.  Raises Errno."""
    word, _, rest = text.replace("\t", " ").partition(" ")
    if word != "if" or not rest:
        raise Errno("EINVAL")
    try:
        return filter_parser.parse(text[len(word) + 1 :], event.fields, world.profile)
    except FilterError:
        # Only some releases log the error.
        world.instances[file.instance].error_log_unknown = True
        raise


def run(world: World, file: EventFile, trigger: Trigger, record: bytes | None) -> None:
    """data_ops_trigger()"""
    instance = world.instances[file.instance]
    if not _has_effect(instance, trigger) or trigger.count == 0:
        return
    if trigger.count is not None:
        trigger.count -= 1
    match trigger.kind:
        case "traceon" | "traceoff":
            instance.tracing_on = trigger.kind == "traceon"
        case "snapshot":
            if instance.snapshot is None:
                raise NotModelled("a snapshot without a spare buffer, which stops recording")
            instance.take_snapshot()
        case "stacktrace":
            instance.append_text(STACK_TRACE)
        case "enable_event" | "disable_event":
            assert trigger.target is not None
            trigger.target.soft_disabled = trigger.kind == "disable_event"
        case "enable_hist" | "disable_hist":
            assert trigger.target is not None
            for each in trigger.target.triggers:
                if each.histogram is not None:
                    each.paused = trigger.kind == "disable_hist"
        case _ if trigger.histogram is not None:
            assert record is not None
            trigger.histogram.add(world.instances, record)
        case _:
            assert trigger.eprobe is not None
            assert record is not None
            trigger.eprobe.hit(world.profile, instance, record)


def _has_effect(instance: Instance, trigger: Trigger) -> bool:
    """Whether the trigger has an effect; one without is not counted."""
    match trigger.kind:
        case "traceon" | "traceoff":
            return instance.tracing_on != (trigger.kind == "traceon")
        case "enable_event" | "disable_event":
            assert trigger.target is not None
            return trigger.target.soft_disabled != (trigger.kind == "disable_event")
    return True
