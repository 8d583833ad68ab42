"""Commands written to the file `trigger`.

Source: trace_events_trigger.c, functions named where a rule is applied.
"""

from __future__ import annotations

from conformance.model.errors import Errno
from conformance.model.state.event_file import ENABLING, HIST_ENABLING, EventFile, Trigger
from conformance.model.state.events import Event
from conformance.model.state.world import World
from conformance.model.text.definition import SPACES
from conformance.model.text.numbers import number_in
from conformance.model.tracing import event_files, histogram_file, triggers
from conformance.model.tracing.event_files import MAX_TEXT
from conformance.model.tracing.kernel_events import KNOWN


def remove_all(world: World, file: EventFile) -> None:
    """Open `trigger` with O_TRUNC: removes triggers of histograms; others have no unreg_all."""
    histogram_file.remove_all(world, file)
    for trigger in [each for each in file.triggers if each.kind in HIST_ENABLING]:
        triggers.remove(world, file, trigger)


def command(world: World, event: Event, file: EventFile, text: str) -> None:
    """event_trigger_regex_write(), trigger_process_regex().  Raises Errno."""
    if not text:
        return
    if len(text) > MAX_TEXT:
        raise Errno("EINVAL")
    text = text.partition("\0")[0].strip(SPACES)
    end = next((at for at, character in enumerate(text) if character in ": \t"), len(text))
    kind, rest = text[:end], text[end + 1 :].lstrip(SPACES)
    removes = kind.startswith("!")
    kind = kind.removeprefix("!")
    if kind not in triggers.KINDS:
        raise Errno("EINVAL")
    if kind == "hist":
        histogram_file.command(world, event, file, rest, removes=removes)
        return
    trigger = Trigger(kind)
    has_target = kind in (*ENABLING, *HIST_ENABLING)
    parameter, condition = _separate(rest, needed=has_target)
    if has_target:
        parameter = _set_target(world, file.instance, trigger, parameter)
    if removes:
        found = next((each for each in file.triggers if each.conflicts_with(trigger)), None)
        if found is not None:
            triggers.remove(world, file, found)
        return
    if parameter is not None:
        trigger.count = _count(parameter)
    if condition:
        trigger.filter = triggers.condition_of(world, event, file, condition)
    if any(each.conflicts_with(trigger) for each in file.triggers):
        raise Errno("EEXIST")
    triggers.add(world, file, trigger)


def _separate(text: str, *, needed: bool) -> tuple[str | None, str]:
    """event_trigger_separate_filter(): the parameter, and the rest."""
    if not text:
        if needed:
            raise Errno("EINVAL")
        return None, ""
    if not needed and not (text[0].isascii() and text[0].isdigit()):
        return None, text
    end = next((at for at, character in enumerate(text) if character in " \t"), len(text))
    return text[:end], text[end:].lstrip(SPACES)


def _set_target(world: World, instance: str, trigger: Trigger, parameter: str | None) -> str | None:
    """find_event_file(): set the target of a trigger; returns the count, if any."""
    system, colon, rest = (parameter or "").partition(":")
    if not colon:
        raise Errno("EINVAL")
    name, colon, count = rest.partition(":")
    trigger.target_name = f"{system}:{name}"
    if name in KNOWN.get(system, ()):
        trigger.target = event_files.kernel_file(world, trigger.target_name, instance)
    else:
        try:
            trigger.target = world.table.tracepoint(system, name).file_in(instance)
        except Errno:
            raise Errno("EINVAL") from None
    return count if colon else None


def _count(parameter: str) -> int:
    """event_trigger_parse_num(): kstrtoul() of the text before a colon."""
    number = number_in(parameter.partition(":")[0])
    if number is None or number < 0:
        raise Errno("EINVAL")
    return number
