"""The last actions of every program: they show what would diverge silently, and undo the rest.

Each of them is an action as any other: a random program may contain it, and shrinking leaves out
the ones that are not needed.
"""

from __future__ import annotations

import struct

from conformance.session.explore.scene import Registered, Scene

# Each has deferred work, of which the model allows only so much.
_MOST_EVENTS, _MOST_BITS = 4, 5
_AGAIN = 3


def look_at_all(scene: Scene) -> None:
    """All that tracefs shows of the program's events."""
    tracefs = scene.ue.tracefs
    tracefs.status()
    tracefs.dynamic_events()
    for event in scene.events[:_MOST_EVENTS]:
        tracefs.enabled(event.tracepoint, system=event.system)
        tracefs.format(event.tracepoint, system=event.system)


def switch_all(scene: Scene) -> None:
    """Each event is written with ftrace on; then it is off, and every bit follows."""
    tracefs = scene.ue.tracefs
    for event in scene.events[:_MOST_EVENTS]:
        tracefs.enable(event.tracepoint, system=event.system)
        scene.settle()
    for one in _first_of_each(scene):
        one.data.write(struct.pack("<i", one.index) + one.payload)
    scene.records()
    for event in scene.events[:_MOST_EVENTS]:
        for instance in sorted(event.tracers):
            files = scene.instance if instance else tracefs
            files.disable(event.tracepoint, system=event.system)
        scene.settle()


def _first_of_each(scene: Scene) -> list[Registered]:
    """A registration of each event and process."""
    found = {(one.name, one.data.process.actor): one for one in reversed(scene.registered)}
    return [one for one in found.values() if scene.usable(one.data)]


def unregister_all(scene: Scene) -> None:
    """Each process unregisters its bits, and some that others have unregistered."""
    for process in reversed(scene.running):
        enablers = scene.enablers(process)[:_MOST_BITS]
        again = [each for each in scene.gone if each not in enablers]
        if enablers or again:
            data = scene.file(process)
            for address, bit in [*enablers, *again[-_AGAIN:]]:
                data.unregister(address, bit)
            scene.gone += [each for each in enablers if each not in scene.gone]
            # Clear in this process, unchanged in the others.
            scene.settle()


def end_all(scene: Scene) -> None:
    """All processes but the first end: one after another, since it may wake its parent."""
    while running := [each for each in scene.running if each is not scene.processes[0]]:
        running[-1].exit()
        scene.settle()


def close_all(scene: Scene) -> None:
    """Nothing holds an event any more: those that do not persist go, the others can be deleted."""
    for each in [*scene.perf, *scene.files]:
        known = scene.world.processes.get(each.process.actor)
        if known is not None and each.slot in known.slots:
            each.close()
            scene.settle()
    if scene.instance is not None:
        scene.instance.remove()
        scene.instance = None
    scene.settle()
    lasting = [event.name for event in scene.events if event.self_reference]
    if lasting:
        data = scene.holder().open_data()
        for name in lasting[:8]:
            data.delete(name, eventually=True)
        data.close()
    scene.ue.tracefs.dynamic_events(eventually=True)
