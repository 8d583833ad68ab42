"""Actions of processes and their memory: clone, execve, exit, and what happens to enable words."""

from __future__ import annotations

import mmap
import os
from typing import Any

from msgspec.structs import replace

from conformance.client.addresses import PAGE, READ_WRITE
from conformance.client.memory import discard, memory_file
from conformance.client.races import RaceCalls, race, track
from conformance.client.tracefs import EVENTS
from conformance.ops import Discard
from conformance.session.explore.scene import MOST_PROCESSES, Scene, is_task


def fork(scene: Scene) -> None:
    """A child of a process: of a task also a thread or a vfork child."""
    if len(scene.running) >= MOST_PROCESSES:
        return
    parent = scene.process()
    if not is_task(parent):
        scene.expect_process()
        inherit(scene, parent, scene.ue.fork(parent))
        return
    way = scene.choices.of(("fork_task", "thread", "vfork"))
    child = getattr(parent, way)()
    inherit(scene, parent, child)
    if way != "fork_task":
        # It shares the words of its parent, see Scene.watched.
        child.unwatch(child.actor)


def inherit(scene: Scene, parent: Any, child: Any) -> None:
    """The descriptors and registrations of a parent can be used by its child."""
    scene.processes.append(child)
    scene.started.add(child.actor)
    child.set_apart(len(scene.processes))
    if parent.actor in scene.executed:
        scene.executed.add(child.actor)
    for each in [each for each in scene.files if each.process.actor == parent.actor]:
        scene.files.append(each.of(child))
    for one in [one for one in scene.registered if one.data.process.actor == parent.actor]:
        scene.registered.append(replace(one, data=one.data.of(child)))


def end(scene: Scene) -> None:
    """The end of a process, or execve(2)."""
    process = scene.process()
    scene.started.add(process.actor)
    if not is_task(process):
        if scene.choices.rarely(3):
            # It keeps its descriptors, and loses CAP_PERFMON.
            process.setuid()
        else:
            process.exit()
        return
    match scene.choices.below(4):
        case 0:
            process.exit()
        case 1:
            process.end()
        case 2 if process.actor not in scene.executed:
            # The program of tasks can be executed once, by a task or its ancestors.
            scene.executed.add(process.actor)
            process.execute()
        case _:
            process.kill()


def memory(scene: Scene) -> None:
    """Something that happens to a page, mostly to that of an enable word."""
    process, choices = scene.process(), scene.choices
    pages = {address & -PAGE for address, _ in scene.enablers(process)} & set(scene.pages)
    page = choices.late(sorted(pages)) if pages else scene.page(process)
    match choices.below(7):
        case 0 | 1:
            scene.ue.call(discard, process, page)
        case 2:
            process.unmap(page)
        case 3:
            process.protect(page, choices.of((mmap.PROT_READ, READ_WRITE, 0, READ_WRITE)))
        case 4:
            process.map_again(page, shared=choices.rarely(3))
        case 5:
            process.store(page, choices.of((b"\0", b"\xff")) * 8)
        case 6:
            scene.pages.append(scene.ue.call(memory_file, process).map())


def burst(scene: Scene) -> None:
    """Calls of a task that come before the work which they defer (see cases/smp)."""
    if not scene.remote:
        return
    task, choices = scene.task(), scene.choices
    data, other, name, page = (
        scene.open(os.O_RDWR, task),
        scene.file(task),
        scene.name(),
        task.map(),
    )
    scene.pages.append(page)
    fields, _ = scene.definitions.get(name, ("", b""))
    text = f"{name} {fields}" if fields else name
    word = scene.watched(task, page, 4)
    if data.register(text, word=word).errno:
        return
    calls = scene.ue.call(RaceCalls, task)
    path = f"{EVENTS}/{name}/enable"
    clones: list[Any] = []
    if choices.rarely(3):
        # Nothing but a descriptor holds the event.
        data.unregister(word)
        steps = [calls.close(data)]
    else:
        scene.ue.call(discard, task, page)
        steps = [calls.command(path, "1")]
    for _ in range(1 + choices.below(3)):
        match choices.below(6):
            case 0 if not clones:
                clones.append(task.cloning())
                steps.append(clones[-1])
            case 1 | 2:
                steps.append(calls.unregister(other, word))
            case 3:
                steps.append(calls.command(path, "0"))
            case 4:
                steps.append(calls.register(other, text, word=word, bit=choices.of((0, 5))))
            case _:
                steps.append(scene.ue.call(Discard, task.actor, page, PAGE))
    task.fifo()
    scene.ue.call(race, task, scene.ue.call(track, task, *steps))
    scene.raced = True
    for each in clones:
        inherit(scene, task, task.adopt(each))
