"""What a random program may do: actions of processes, descriptors, words, events and listeners.

An action takes what it needs from the scene, and makes it if there is none.  Arguments are valid,
nearly valid, or hostile.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conformance.abi import uapi
from conformance.client.addresses import KERNEL_HALF, PAGE, READ_WRITE, STRING, STRUCT, WORDS
from conformance.client.memory import discard, memory_file
from conformance.client.perf import COUNTING, RAW, PerfAttr, open_stored, store_id
from conformance.client.tasks import Task, first_task
from conformance.client.tracefs import SYSTEM
from conformance.client.user_events import UserEvents
from conformance.session.explore.choices import Choices
from conformance.session.explore.spoken import Spoken

# Fields and a payload that fits them.
FIELDS: tuple[tuple[str, bytes], ...] = (
    ("u32 a", b"\1\0\0\0"),
    ("", b""),
    ("u8 a; u64 b", b"\1" + bytes(7) + b"\2"),
    ("char[8] s", b"abc\0defg"),
    ("__rel_loc char[] s", struct.pack("<HH", 0, 3) + b"hi\0"),
    ("__data_loc char[] s", struct.pack("<HH", 12, 3) + b"hi\0"),
    ("u32 a; __rel_loc char[] s", struct.pack("<IHH", 7, 0, 4) + b"abc\0"),
    ("__data_loc u8[] d; u16 e", struct.pack("<HHH", 14, 2, 9) + b"\1\2"),
    ("struct point p 12; s16 q", bytes(range(14))),
    ("unsigned long long a; int b", bytes(range(12))),
    ("u32  a;", b"\1\0\0\0"),
    ("unsigned int a", b"\1\0\0\0"),
)
# Refused, or read in another way than one might think.
ODD_FIELDS = (
    *("u32", "u32 a b", "foo a", "char[] s", "char[0] s", "char[1025] s", "struct p"),
    *("__data_loc char s", "__rel_loc u8[] a; u8 a", "u32 a 4", "char[3] s;;", " u32 a"),
    *("struct my_struct p 4294967295", "s8[4] x", "u32 __a; u32 __A", "unsigned a"),
    *("long long b", "u32 a,b", "u32 a;; u8 b"),
)
_STEMS = ("a", "b", "c")
_FLAGS = (0, 0, 0, 1, 1, 2, 3, 4, 0x8000)
_SIZES = (4, 4, 4, 8, 8, 0, 1, 2, 3, 16)
_REG_SIZES = (None, None, None, None, 27, 29, 32, 0, 4, PAGE, PAGE + 1)
_FILTERS = ("a == 1", "a > 1 && a < 9", 's == "hi"', 's ~ "*b*"', "a", "nothing == 1", "0", "")
_TRIGGERS = ("traceoff:1", "hist:keys=a", "!traceoff:1", "!hist:keys=a", "snapshot", "nothing")
_PAGES = 2
_MOST_PROCESSES = 5


@dataclass(slots=True)
class _Registered:
    """A registration that was made, whether it succeeded or not."""

    data: Any
    name: str
    payload: bytes
    index: int
    address: int
    bit: int


@dataclass(slots=True)
class Scene:
    """What the actions so far have left."""

    ue: Any
    choices: Choices
    processes: list[Any] = field(default_factory=list)
    files: list[Any] = field(default_factory=list)
    registered: list[_Registered] = field(default_factory=list)
    perf: list[Any] = field(default_factory=list)
    rings: list[Any] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    started: set[str] = field(default_factory=set)
    executed: set[str] = field(default_factory=set)

    @property
    def remote(self) -> bool:
        """Whether registrations have enable words."""
        return bool(self.ue.profile.subject.has("remote_enable"))

    def runs(self, process: Any) -> bool:
        """Whether a process lives, and does not wait for its vfork child."""
        known = self.ue.lockstep.subject.model.world.processes.get(process.actor)
        if known is None:
            # Its start is queued, or it has ended.
            return process.actor not in self.started
        self.started.add(process.actor)
        return not known.waits_for

    def usable(self, data: Any) -> bool:
        """Whether a descriptor is open in a process that runs.

        The number of a closed one may be that of another.
        """
        known = self.ue.lockstep.subject.model.world.processes.get(data.process.actor)
        return self.runs(data.process) and known is not None and data.slot in known.slots

    def process(self) -> Any:
        """A process that runs."""
        running = [each for each in self.processes if self.runs(each)]
        if not running:
            first = not self.processes
            made = self.ue.process if first else self.ue.new_process()
            self.processes.append(made)
            return made
        return self.choices.of(running)

    def task(self) -> Any:
        """A task that runs: it can make threads."""
        tasks = [each for each in self.processes if _is_task(each) and self.runs(each)]
        if not tasks:
            tasks = [self.ue.call(first_task, self.ue)]
            self.processes += tasks
            self.started |= {each.actor for each in tasks}
        return self.choices.of(tasks)

    def file(self) -> Any:
        """A descriptor of user_events_data in a process that runs."""
        files = [each for each in self.files if self.usable(each)]
        if not files:
            files = [self.open(os.O_RDWR)]
        return self.choices.of(files)

    def open(self, flags: int) -> Any:
        """A new descriptor of user_events_data."""
        data = self.process().open_data(flags)
        # What the client has queued, so that the model knows it.
        self.ue.lockstep.subject.run()
        self.files.append(data)
        return data

    def name(self) -> str:
        """The name of an event, which may exist."""
        name: str = self.ue.name(self.choices.of(_STEMS))
        return name

    def registration(self) -> _Registered | None:
        """One of a descriptor that can be used."""
        found = [each for each in self.registered if self.usable(each.data)]
        return self.choices.of(found) if found else None

    def address(self, process: Any) -> int:
        """The address of an enable word, mostly of one that can be written."""
        choices = self.choices
        match choices.below(8):
            case 0 | 1 | 2 | 3:
                if self.words and not choices.rarely(3):
                    return choices.of(self.words)
                word = process.word(choices.of((4, 8)), offset=choices.of((0, 0, 0, 4, 2)))
                self.words.append(word.address)
                return int(word.address)
            case 4 | 5:
                page: int = process.map(_PAGES)
                self.words += [page, page + PAGE - 4]
                return page
            case 6:
                return choices.of((0, 1, PAGE, KERNEL_HALF, (1 << 47) - 4, (1 << 64) - 4))
        return choices.of(self.words or [0]) + choices.of((1, 2, 4, PAGE))


def _is_task(process: Any) -> bool:
    return isinstance(process.subject, Task)


def walk(user_events: UserEvents, choices: Choices, lines: list[str]) -> None:
    """Perform the actions of some choices; ``lines`` gets the calls of the client as text.

    Raises what the client raises: Divergence, and NotModelled.
    """
    scene = Scene(Spoken(user_events, "ue", lines, user_events.prefix), choices)
    while choices.next_action():
        choices.of(_WEIGHTED)(scene)


def _definition(scene: Scene) -> tuple[str, bytes]:
    name, choices = scene.name(), scene.choices
    if choices.rarely(6):
        fields, payload = choices.of(ODD_FIELDS), b"\1\0\0\0"
    else:
        fields, payload = choices.of(FIELDS)
    if choices.rarely(20):
        # All begin as names of this program, which tells them from those of others.
        name += choices.of(("/x", " ", "x" * 240, "-y", ";"))
    return f"{name} {fields}" if fields else name, payload


def _register(scene: Scene) -> None:
    data, choices = scene.file(), scene.choices
    definition, payload = _definition(scene)
    options: dict[str, Any] = {}
    size, bit, flags = choices.of(_SIZES), choices.of((0, 1, 31, 5, 63, 32, 64, 255)), 0
    address = 0
    if scene.remote:
        address = scene.address(data.process)
        flags = choices.of(_FLAGS)
        # Only words are watched: an address of no use has none.
        at = address if address in scene.words else WORDS
        options = {"word": data.process.word_at(at, value=None), "bit": bit, "flags": flags}
        options |= {"enable_addr": address, "enable_size": size}
    if (struct_size := choices.of(_REG_SIZES)) is not None:
        options["struct_size"] = struct_size
        options["tail"] = choices.of((b"", b"\0" * 8, b"\1"))
    if choices.rarely(30):
        options["name_args"] = choices.of((0, STRING + 4 * PAGE - 1, KERNEL_HALF))
    done = data.register(definition, **options)
    name = definition.partition(" ")[0]
    scene.registered.append(_Registered(data, name, payload, done.index, address, bit))


def _write(scene: Scene) -> None:
    choices, found = scene.choices, scene.registration()
    data, index, payload = (
        (found.data, found.index, found.payload)
        if found
        else (
            scene.file(),
            0,
            b"",
        )
    )
    if choices.rarely(8):
        index = choices.of((-1, index + 1, 1 << 30, 0))
    match choices.below(8):
        case 5:
            payload = payload[: choices.below(len(payload) + 1)]
        case 6:
            payload += bytes(choices.of((1, 3, 100, 4050, 5000)))
        case 7 if payload:
            at = choices.below(len(payload))
            payload = payload[:at] + bytes([choices.below(256)]) + payload[at + 1 :]
    record = struct.pack("<i", index if index < 1 << 31 else -1) + payload
    match choices.below(7):
        case 6 if not _is_task(data.process):
            data.submit(record)
        case 3:
            cut = choices.below(len(record) + 1)
            data.writev([record[:cut], record[cut:]])
        case 4:
            data.pwrite(record, choices.of((0, 1, 1 << 40)))
        case 5:
            data.write(record[: choices.below(5)])
        case _:
            data.write(record)


def _unregister(scene: Scene) -> None:
    if not scene.remote:
        return
    choices, found = scene.choices, scene.registration()
    data = found.data if found and not choices.rarely(4) else scene.file()
    address, bit = (found.address, found.bit) if found else (0, 0)
    if choices.rarely(6):
        address, bit = scene.address(data.process), choices.of((0, 1, 31, 63, 64))
    options: dict[str, Any] = {}
    if choices.rarely(8):
        options["struct_size"] = choices.of((0, 8, 15, 17, 24, PAGE, PAGE + 1))
        options["tail"] = choices.of((b"", b"\0" * 8, b"\1"))
    if choices.rarely(10):
        options[choices.of(("reserved", "reserved2"))] = 1
    data.unregister(address, bit & 255, **options)


def _delete(scene: Scene) -> None:
    name = scene.name()
    scene.file().delete(scene.choices.of((name, name, name + " u32 a", "", name + "z")))


def _switch(scene: Scene) -> None:
    name, choices = scene.name(), scene.choices
    scene.ue.tracefs.write(
        scene.ue.tracefs.event_path(name, "enable"), choices.of(("1\n", "0\n", "1\n", "2\n"))
    )


def _open(scene: Scene) -> None:
    flags = scene.choices.of((os.O_RDWR, os.O_RDWR, os.O_WRONLY, os.O_RDONLY))
    scene.open(flags)


def _close(scene: Scene) -> None:
    data = scene.file()
    data.close()
    if scene.choices.rarely(4):
        data.write(bytes(8))


def _dup(scene: Scene) -> None:
    scene.files.append(scene.file().dup())


def _fork(scene: Scene) -> None:
    if len(scene.processes) < _MOST_PROCESSES:
        parent = scene.process()
        if not _is_task(parent):
            _inherit(scene, parent, scene.ue.fork(parent))


def _task(scene: Scene) -> None:
    """A thread, a vfork child or a child of a task."""
    if len(scene.processes) < _MOST_PROCESSES:
        parent = scene.task()
        kind = scene.choices.of(("thread", "vfork", "fork_task", "thread"))
        _inherit(scene, parent, getattr(parent, kind)())


def _inherit(scene: Scene, parent: Any, child: Any) -> None:
    """The descriptors and registrations of a parent can be used by its child."""
    scene.processes.append(child)
    scene.started.add(child.actor)
    if parent.actor in scene.executed:
        scene.executed.add(child.actor)
    for each in [each for each in scene.files if each.process.actor == parent.actor]:
        scene.files.append(each.of(child))
    for one in [one for one in scene.registered if one.data.process.actor == parent.actor]:
        data = one.data.of(child)
        scene.registered.append(
            _Registered(data, one.name, one.payload, one.index, one.address, one.bit)
        )


def _exit(scene: Scene) -> None:
    process = scene.process()
    scene.started.add(process.actor)
    if not _is_task(process):
        process.exit()
        return
    match scene.choices.below(4):
        case 0:
            process.end()
        case 1:
            process.exit()
        case 2:
            process.kill()
        case 3 if process.actor not in scene.executed:
            # The program of tasks can be executed once, by a task or its ancestors.
            scene.executed.add(process.actor)
            process.execute()


def _memory(scene: Scene) -> None:
    process, choices = scene.process(), scene.choices
    pages = [each for each in scene.words if each % PAGE == 0]
    if not pages:
        scene.words.append(process.map(_PAGES))
        return
    page = choices.of(pages)
    match choices.below(6):
        case 0:
            process.unmap(page)
        case 1:
            process.protect(page, choices.of((mmap.PROT_READ, READ_WRITE, 0)))
        case 2:
            process.map_again(page, shared=choices.rarely(3))
        case 4:
            scene.ue.call(discard, process, page)
        case 5:
            scene.words.append(scene.ue.call(memory_file, process).map())
        case 3:
            process.store(page, choices.of((b"\0", b"\xff")) * 8)


def _perf(scene: Scene) -> None:
    process, choices = scene.process(), scene.choices
    open_files = [each for each in scene.perf if scene.runs(each.process)]
    if not open_files or choices.rarely(3):
        name = scene.name()
        attr = PerfAttr(**_attr(choices))
        if scene.ue.call(store_id, process, name, attr).ok:
            scene.perf.append(scene.ue.call(open_stored, process, attr))
        return
    event = choices.of(open_files)
    match choices.below(7):
        case 0:
            event.read()
        case 5:
            scene.rings.append(event.map())
        case 6:
            for ring in scene.rings[-1:]:
                if scene.runs(ring.process) and ring.mapped.ok:
                    ring.records()
        case 1:
            event.disable()
        case 2:
            event.enable()
        case 3:
            event.set_filter(choices.of(_FILTERS))
        case 4:
            event.close()
            scene.perf.remove(event)


def _attr(choices: Choices) -> dict[str, Any]:
    counting = choices.rarely(3)
    return {
        "period": COUNTING.period if counting else 1,
        "sample_type": COUNTING.sample_type if counting else RAW,
        "disabled": choices.rarely(3),
        "inherit": choices.rarely(4),
    }


def _filter(scene: Scene) -> None:
    choices = scene.choices
    directory = scene.ue.tracefs.directory(scene.name())
    if choices.rarely(3):
        directory.trigger(choices.of(_TRIGGERS))
    else:
        directory.set_filter(choices.of(_FILTERS))


def _command(scene: Scene) -> None:
    choices = scene.choices
    definition, _ = _definition(scene)
    name = scene.name()
    text = choices.of(
        (
            f"u:{definition}",
            f"-:{name}",
            f"!u:{name}",
            f"u:{SYSTEM}/{definition}",
            f"-:{SYSTEM}/{name}",
            f"u {definition}",
            f"u:{name} {choices.of(ODD_FIELDS)}",
        )
    )
    scene.ue.tracefs.command(f"{text}\n")


def _look(scene: Scene) -> None:
    tracefs, choices = scene.ue.tracefs, scene.choices
    match choices.below(6):
        case 0:
            tracefs.status()
        case 1:
            tracefs.dynamic_events()
        case 2:
            tracefs.records()
        case 3:
            tracefs.format(scene.name())
        case 4:
            tracefs.enabled(scene.name())
        case 5:
            tracefs.format_with_lengths(scene.name())


def _hostile(scene: Scene) -> None:
    choices = scene.choices
    request = choices.of(
        (uapi.DIAG_IOCSREG, uapi.DIAG_IOCSDEL, uapi.DIAG_IOCSUNREG, 0, uapi.DIAG_IOCSREG ^ 3)
    )
    scene.file().ioctl(request, choices.of((0, STRUCT, STRING + 4 * PAGE - 2, KERNEL_HALF, 1)))


_ACTIONS: tuple[tuple[int, Callable[[Scene], None]], ...] = (
    (7, _register),
    (7, _write),
    (5, _switch),
    (4, _unregister),
    (3, _delete),
    (2, _open),
    (2, _close),
    (1, _dup),
    (2, _fork),
    (2, _task),
    (1, _exit),
    (3, _memory),
    (2, _perf),
    (2, _filter),
    (2, _command),
    (4, _look),
    (1, _hostile),
)
_WEIGHTED = tuple(action for weight, action in _ACTIONS for _ in range(weight))
