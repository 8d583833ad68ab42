"""The text files of tracefs and the sysctl: what they show and what writing them does.

Source: trace_events_user.c:user_seq_show, user_event_show, user_event_create,
user_event_match; trace_dynevent.c:dyn_event_release, create_dyn_event;
trace.c:trace_parse_run_command; trace_events.c:f_show, event_enable_write.
"""

from __future__ import annotations

import os
import re

from conformance.abi import grammar
from conformance.abi.layouts import USER_EVENT_REG_PERSIST
from conformance.abi.profiles import Generation, Profile
from conformance.model import definition, foreign_probe, kernel_events, status_page
from conformance.model.errors import Errno, NotModelled
from conformance.model.events import Event
from conformance.model.world import (
    STATUS_FTRACE,
    STATUS_OTHER,
    STATUS_PERF,
    TOP,
    OpenFile,
    Process,
    World,
)

TRACEFS = "/sys/kernel/tracing"
DATA = f"{TRACEFS}/user_events_data"
STATUS = f"{TRACEFS}/user_events_status"
DYNAMIC_EVENTS = f"{TRACEFS}/dynamic_events"
TRACE = f"{TRACEFS}/trace"
TRACING_ON = f"{TRACEFS}/tracing_on"
MAXIMUM = "/proc/sys/kernel/user_events_max"

# A shared mapping wanted a writable descriptor of user_events_status.
_MAPPED_STATUS_MODE = 0o640
MODES = {
    DATA: 0o640,
    STATUS: 0o440,
    DYNAMIC_EVENTS: 0o640,
}
_EVENT_MODES = {"enable": 0o640, "filter": 0o640, "trigger": 0o640, "format": 0o440, "id": 0o440}

_EVENT_FILE = re.compile(rf"{TRACEFS}/events/({grammar.SYSTEM}|{grammar.MULTI_SYSTEM})/(.+)/(\w+)")

_COMMON_FIELDS = (
    ("unsigned short common_type", 0, 2, 0),
    ("unsigned char common_flags", 2, 1, 0),
    ("unsigned char common_preempt_count", 3, 1, 0),
    ("int common_pid", 4, 4, 1),
)
_USERS = {STATUS_FTRACE: "ftrace", STATUS_PERF: "perf", STATUS_OTHER: "other"}
# The id of an event is the kernel's choice; View.STRUCTURE leaves it out on both sides.
_ID_LINE = "ID: 0"
# What stands before the body of a trace line: task, pid, cpu, flags, time.
_LINE_HEAD = "model-1 [000] ..... 0.000000: "


def event_file(world: World, path: str) -> tuple[Event, str] | None:
    """The event and file name behind a path below events/user_events*.

    None for a path elsewhere; raises Errno("ENOENT") for an event that is not there.
    """
    found = _EVENT_FILE.fullmatch(path)
    if found is None:
        return None
    name = found[2].encode().decode("latin-1")
    return world.table.tracepoint(found[1], name), found[3]


def event_at(world: World, path: str) -> Event | None:
    """The event one of whose files a path names, if there is one."""
    try:
        found = event_file(world, path)
    except Errno:
        return None
    return None if found is None else found[0]


def check_open(world: World, process: Process, path: str, flags: int) -> None:
    """What open(2) of a modelled path answers; O_TRUNC acts on dynamic_events."""
    if path.startswith((TRACEFS, foreign_probe.PARAMETERS)) and process.uid != 0:
        # The root directory of tracefs has mode 0700.
        raise Errno("EACCES")
    event_file(world, path)
    if path == DYNAMIC_EVENTS and flags & os.O_TRUNC and flags & os.O_ACCMODE != os.O_RDONLY:
        _release_all(world, process)


def mode(world: World, path: str) -> int:
    """Permission bits of a path.  Raises NotModelled and Errno("ENOENT")."""
    found = event_file(world, path)
    modes = MODES if found is None else _EVENT_MODES
    key = path if found is None else found[1]
    if key not in modes:
        raise NotModelled(f"the mode of {path}")
    if path == STATUS and world.profile.has("status_page"):
        return _MAPPED_STATUS_MODE
    return modes[key]


def read(world: World, process: Process, path: str) -> bytes | None:
    """The whole text of a file, or None when nothing is known of it yet."""
    check_open(world, process, path, os.O_RDONLY)
    found = event_file(world, path)
    if found is not None:
        return _event_text(world, *found)
    match path:
        case _ if path == STATUS:
            return _encode(status_text(world))
        case _ if path == DYNAMIC_EVENTS:
            return _encode("".join(_definition_line(event) for event in world.table.events))
        case _ if path == TRACING_ON:
            return b"1\n" if world.tracing_on else b"0\n"
        case _ if path == MAXIMUM:
            _check_limited(world)
            return b"%d\n" % world.table.maximum
        case _ if path == TRACE:
            return _trace_text(world)
        case _ if path == foreign_probe.ATTACH:
            return _encode(foreign_probe.shown(world))
    others = kernel_events.find(world, path)
    if others is not None:
        return kernel_events.read(world, path, *others)
    raise NotModelled(f"reading {path}")


def read_open(world: World, file: OpenFile, count: int) -> bytes:
    """read(2) of a descriptor: the text is made at position 0 and kept (seq_read)."""
    if file.path != STATUS:
        raise NotModelled(f"read(2) of {file.path}")
    if file.position == 0:
        file.text = _encode(status_text(world))
    data = file.text[file.position : file.position + count]
    file.position += len(data)
    return data


def seek_open(world: World, file: OpenFile, offset: int, whence: int) -> int:
    """lseek(2) of a descriptor (seq_lseek): moving makes the text anew, the end is unknown."""
    if file.path != STATUS:
        raise NotModelled(f"lseek(2) of {file.path}")
    if whence == os.SEEK_CUR:
        offset += file.position
    elif whence != os.SEEK_SET:
        raise Errno("EINVAL")
    if offset < 0:
        raise Errno("EINVAL")
    if offset != file.position:
        file.text = _encode(status_text(world))
        file.position = offset
    return offset


def write(world: World, process: Process, path: str, data: bytes, flags: int) -> int:
    """open, one write(2), close; the value is what write(2) returns."""
    check_open(world, process, path, flags)
    text = data.decode("latin-1")
    found = event_file(world, path)
    if found is not None:
        _write_event_file(world, *found, text)
        return len(data)
    others = kernel_events.find(world, path)
    if others is not None and others[1] == "enable":
        kernel_events.set_enabled(world, others[0], on=_switch(text))
        return len(data)
    match path:
        case _ if path == DYNAMIC_EVENTS:
            return run_commands(world, process, text)
        case _ if path == TRACING_ON:
            world.tracing_on = _number(text) != 0
        case _ if path == MAXIMUM:
            _check_limited(world)
            world.table.maximum = _sysctl(text)
        case _ if path == TRACE and flags & os.O_TRUNC:
            _clear_trace(world)
        case _ if path == foreign_probe.ATTACH:
            foreign_probe.attach(world, text)
        case _ if path == foreign_probe.DETACH:
            foreign_probe.detach(world)
        case _:
            raise NotModelled(f"writing {path}")
    return len(data)


# user_events_status and dynamic_events


def status_text(world: World) -> str:
    """All events in hash order, then the totals."""
    lines = []
    busy = 0
    for event in world.table.in_hash_order():
        status = _shown_status(world, event)
        users = "".join(f" {user}" for bit, user in _USERS.items() if status & bit)
        used = f" # Used by{users}" if status else ""
        busy += bool(status)
        index = f"{event.index}:" if world.status_page is not None else ""
        lines.append(f"{index}{event.tracepoint}{used}\n")
    totals = f"\nActive: {len(lines)}\nBusy: {busy}\n"
    if world.status_page is not None:
        totals += f"Max: {status_page.capacity(world.profile)}\n"
    return "".join(lines) + totals


def _shown_status(world: World, event: Event) -> int:
    """What the text believes: 5.18 to 6.0 look into the page, which others may write."""
    if world.profile.generation is Generation.BYTE_STATUS:
        assert world.status_page is not None
        return world.status_page.byte(event.index)
    return event.status


def _definition_line(event: Event) -> str:
    fields = "; ".join(field.text for field in event.fields)
    return f"{grammar.PREFIX}{event.name}" + (f" {fields}" if fields else "") + "\n"


def run_commands(world: World, process: Process, text: str) -> int:
    """Lines of one write, up to the first that fails; earlier ones stay done."""
    position = 0
    while position < len(text):
        line, newline, _ = text[position:].partition("\n")
        consumed = len(line) + len(newline)
        # The buffer holds 4095 characters and the NUL put behind them; a NUL of the
        # writer's own ends a line before its newline, which is taken for a longer one.
        if consumed >= grammar.COMMAND_BUFFER or "\0" in line:
            raise Errno("EINVAL")
        _run_command(world, process, line.partition("#")[0])
        position += consumed
    return len(text)


def _run_command(world: World, process: Process, command: str) -> None:
    if command[:1] in ("-", "!"):
        _delete_command(world, process, command)
    elif command.startswith(grammar.PREFIX):
        raw = command.removeprefix(grammar.PREFIX).lstrip(definition.SPACES)
        if not world.profile.has("lasting_events"):
            # user_event_create() asks for the persist flag, which these kernels refuse.
            raise Errno("EINVAL")
        flags = USER_EVENT_REG_PERSIST if world.profile.has("persist") else 0
        world.table.register(raw, flags, capable=process.capable)
    elif definition.split_arguments(command):
        raise Errno("EINVAL")
    # A line without a token is accepted: trace_probe.c:trace_probe_create() is asked
    # first and takes it, where kprobe, uprobe or eprobe events are configured.


def _delete_command(world: World, process: Process, command: str) -> None:
    _reset_buffers(world)
    head, *tokens = definition.split_arguments(command)
    before, colon, target = head.partition(":")
    if not colon or (head.startswith("-") and before != "-"):
        raise Errno("EINVAL")
    system, slash, name = target.partition("/")
    if not slash:
        system, name = "", target
        if not name:
            raise Errno("EINVAL")
    elif system not in _systems(world):
        raise Errno("ENOENT")
    found = [event for event in world.table.events if _matches(world, event, name, tokens)]
    if not found:
        raise Errno("ENOENT")
    for event in found:
        world.table.free(event, capable=process.capable)
        world.forget(event)


def _systems(world: World) -> tuple[str, ...]:
    multi = world.profile.has("multi_format")
    return (grammar.SYSTEM, grammar.MULTI_SYSTEM) if multi else (grammar.SYSTEM,)


def _matches(world: World, event: Event, name: str, tokens: list[str]) -> bool:
    if event.name != name:
        return False
    if not tokens and not world.profile.has("null_arguments_matched"):
        return True
    return definition.fields_match(event.fields, tokens, world.profile)


def _release_all(world: World, process: Process) -> None:
    """Opening dynamic_events for truncation: nothing goes while anything is busy."""
    if any(not event.deletable for event in world.table.events):
        raise Errno("EBUSY")
    _reset_buffers(world)
    for event in list(world.table.events):
        world.table.free(event, capable=process.capable)
        world.forget(event)


def _reset_buffers(world: World) -> None:
    """Deleting through dynamic_events may reset buffers in which anything ever was."""
    if world.records:
        world.trace_unknown = "an event was deleted through dynamic_events"


# events/SYSTEM/NAME/


def _event_text(world: World, event: Event, file: str) -> bytes | None:
    match file:
        case "enable":
            return b"1\n" if TOP in event.tracers else b"0\n"
        case "format":
            return _encode(format_text(event, world.profile))
        case "id":
            return None
    raise NotModelled(f"reading {file} of an event")


def _write_event_file(world: World, event: Event, file: str, text: str) -> None:
    if file != "enable":
        raise NotModelled(f"writing {file} of an event")
    world.set_tracer(event, TOP, on=_switch(text))


def _switch(text: str) -> bool:
    """event_enable_write(): 0 or 1.  Raises Errno("EINVAL")."""
    value = _number(text)
    if value not in (0, 1):
        raise Errno("EINVAL")
    return bool(value)


def format_text(event: Event, profile: Profile) -> str:
    """The `format` file: common fields, own fields, print fmt.  The id is left open."""
    common = "".join(_format_line(*line) for line in _COMMON_FIELDS)
    own = "".join(
        _format_line(_shown_type(field, profile), field.offset, field.size, int(field.signed))
        for field in event.fields
    )
    return (
        f"name: {event.tracepoint}\n{_ID_LINE}\nformat:\n{common}\n{own}\n"
        f"print fmt: {definition.print_format(event.fields)}\n"
    )


def _format_line(text: str, offset: int, size: int, signed: int) -> str:
    return f"\tfield:{text};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"


def _shown_type(field: definition.Field, profile: Profile) -> str:
    """The array part of a type becomes a length behind the name, except for __data_loc.

    Whatever follows the bracket is not shown; a length of 0 is shown as nothing.  Before
    fields had a length of their own the text of the type was moved, bracket and all.
    """
    before, bracket, rest = field.type.partition("[")
    if not bracket or field.type.startswith("__data_loc"):
        return f"{field.type} {field.name}"
    if not profile.has("array_length_of_field"):
        return f"{before} {field.name}[{rest}"
    length = field.size if field.type.startswith(grammar.ARRAY_PREFIXES) else ""
    return f"{before} {field.name}[{length}]"


# trace, tracing_on, sysctl


def _trace_text(world: World) -> bytes:
    if world.trace_unknown:
        raise NotModelled(f"the trace buffer: {world.trace_unknown}; clear it first")
    return _encode("".join(f"{_LINE_HEAD}{record.text}" for record in world.records))


def _clear_trace(world: World) -> None:
    world.records.clear()
    world.trace_unknown = ""
    for event in world.table.events:
        event.records = 0


def _check_limited(world: World) -> None:
    """Where a page gives room to events there is no sysctl for their number."""
    if not world.profile.has("remote_enable"):
        raise Errno("ENOENT")


def _number(text: str) -> int:
    """kstrtoul_from_user() with base 10."""
    return definition.parse_unsigned(text, 10)


def _sysctl(text: str) -> int:
    """proc_douintvec(): one unsigned 32-bit number.  Raises Errno("EINVAL")."""
    digits = text.strip(definition.SPACES)
    if not digits.isascii() or not digits.isdigit() or int(digits) >= 1 << 32:
        raise Errno("EINVAL")
    return int(digits)


def _encode(text: str) -> bytes:
    return text.encode("latin-1")
