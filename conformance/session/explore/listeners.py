"""Actions of listeners: ftrace, instances, perf, filters, triggers; and reads of tracefs."""

from __future__ import annotations

from typing import Any

from conformance.client.perf import COUNTING, RAW, PerfAttr, open_stored, store_id
from conformance.session.explore.choices import Choices
from conformance.session.explore.scene import Scene, is_task

_FILTERS = ("a == 1", "a > 1 && a < 9", 's == "hi"', 's ~ "*b*"', "a", "nothing == 1", "0", "")
_TRIGGERS = ("traceoff:1", "hist:keys=a", "!traceoff:1", "!hist:keys=a", "snapshot", "nothing")


def switch(scene: Scene) -> None:
    """Enable or disable an event in ftrace."""
    tracefs, (system, name) = scene.tracefs, scene.event()
    text = scene.choices.of(("1\n", "0\n", "1\n", "0\n", "1\n", "2\n"))
    tracefs.write(tracefs.event_path(name, "enable", system), text)


def perf(scene: Scene) -> None:
    """Open a perf event, or use one."""
    process, choices = scene.process(), scene.choices
    files = [each for each in scene.perf if scene.usable(each)]
    if not files or choices.rarely(3):
        system, name = scene.event()
        attr = PerfAttr(**_attr(choices, follows=not is_task(process)))
        if scene.ue.call(store_id, process, name, attr, system).ok:
            opened = scene.ue.call(open_stored, process, attr)
            scene.perf += [] if opened.errno else [opened]
        return
    event = choices.late(files)
    match choices.below(8):
        case 0 | 1:
            event.close()
            scene.perf.remove(event)
        case 2:
            event.read()
        case 3:
            event.disable()
        case 4:
            event.enable()
        case 5:
            event.set_filter(choices.of(_FILTERS))
        case 6:
            scene.rings.append(event.map())
        case 7:
            for ring in scene.rings[-1:]:
                if scene.runs(ring.process) and ring.mapped.ok:
                    ring.records()


def _attr(choices: Choices, *, follows: bool) -> dict[str, Any]:
    """Members of perf_event_attr; the model has no children of tasks that perf follows."""
    counting = choices.rarely(3)
    return {
        "period": COUNTING.period if counting else 1,
        "sample_type": COUNTING.sample_type if counting else RAW,
        "disabled": choices.rarely(4),
        "inherit": choices.rarely(6) and follows,
    }


def filter_event(scene: Scene) -> None:
    """A filter or a trigger of an event."""
    choices, (system, name) = scene.choices, scene.event()
    directory = scene.tracefs.directory(name, system)
    if choices.rarely(3):
        directory.trigger(choices.of(_TRIGGERS))
    else:
        directory.set_filter(choices.of(_FILTERS))


def look(scene: Scene) -> None:
    """Read a file of tracefs."""
    tracefs, choices = scene.ue.tracefs, scene.choices
    match choices.below(6):
        case 0:
            tracefs.status()
        case 1:
            tracefs.dynamic_events()
        case 2:
            scene.records()
    if choices.below(2):
        return
    system, name = scene.event()
    match choices.below(3):
        case 0:
            tracefs.format(name, system=system)
        case 1:
            tracefs.enabled(name, system=system)
        case 2:
            tracefs.format_with_lengths(name, system=system)
