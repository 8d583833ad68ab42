"""read(2), write(2) and lseek(2) of open tracefs files, whose event may be removed.

Source: trace_events.c:event_enable_read, event_enable_write, event_filter_write;
fs/seq_file.c:seq_read, seq_lseek.
"""

from __future__ import annotations

import os

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.state.process import OpenFile
from conformance.model.state.world import World
from conformance.model.text.numbers import parse_switch
from conformance.model.tracefs import enabling, event_paths, files
from conformance.model.tracing import event_files, instances
from conformance.model.user_events import status_file


def read(world: World, file: OpenFile, count: int) -> bytes:
    """seq_read(): the text is generated at position 0 and kept."""
    if control_at(world, file.path) == "enable":
        data = _switch_text(world, file)[file.position : file.position + count]
        file.position += len(data)
        return data
    if event_paths.event_file_name(file.path) in ("format", "filter", "trigger"):
        # f_start(), event_filter_read(), trigger_start(): ENODEV for a removed event.
        _event_of(world, file)
    if file.path != files.STATUS:
        raise NotModelled(f"read(2) of {file.path}")
    if file.position == 0:
        file.text = status_file.text(world).encode("latin-1")
    data = file.text[file.position : file.position + count]
    file.position += len(data)
    return data


def control_at(world: World, path: str) -> str:
    """Which of `enable` and `filter` a path is, "" for others; its event may be removed."""
    try:
        local = instances.locate(world, path)[1]
    except Errno:
        return ""
    name = "enable" if enabling.is_enable(local) else event_paths.event_file_name(local)
    return name if name in ("enable", "filter") else ""


def _switch_text(world: World, file: OpenFile) -> bytes:
    """event_enable_read(), system_enable_read().  Raises Errno("ENODEV") for a removed event."""
    name, local = instances.locate(world, file.path)
    if enabling.is_enable(local):
        return enabling.group_text(world, name, local)
    return event_files.enable_text(world, _event_of(world, file).file_in(name)).encode()


def _event_of(world: World, file: OpenFile) -> Event:
    """event_file_file(): the event of an open file.  Raises Errno("ENODEV")."""
    event = None if file.event is None else world.table.find(file.event)
    if event is None:
        raise Errno("ENODEV")
    return event


def write(world: World, file: OpenFile, text: str) -> int:
    """write(2) to an open `enable` or `filter`; the position advances and has no effect."""
    name, local = instances.locate(world, file.path)
    if event_paths.event_file_name(local) == "filter":
        files.write_event_file(world, _event_of(world, file), "filter", text, name)
        file.position += len(text)
        return len(text)
    on = parse_switch(text)
    if enabling.is_enable(local):
        # system_enable_write() advances it even if it fails.
        file.position += len(text)
        enabling.set_group(world, name, local, on=on)
        return len(text)
    event_files.enable(world, _event_of(world, file), name, on=on)
    file.position += len(text)
    return len(text)


def seek(world: World, file: OpenFile, offset: int, whence: int) -> int:
    """seq_lseek(): a new position regenerates the text; SEEK_END is refused."""
    if file.path != files.STATUS:
        raise NotModelled(f"lseek(2) of {file.path}")
    if whence == os.SEEK_CUR:
        offset += file.position
    elif whence != os.SEEK_SET:
        raise Errno("EINVAL")
    if offset < 0:
        raise Errno("EINVAL")
    if offset != file.position:
        file.text = status_file.text(world).encode("latin-1")
        file.position = offset
    return offset
