"""read(2), write(2) and lseek(2) of descriptors of tracefs's files, whose events may be gone.

Source: trace_events.c:event_enable_read, event_enable_write, event_filter_write;
fs/seq_file.c:seq_read, seq_lseek.
"""

from __future__ import annotations

import os

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.state.process import OpenFile
from conformance.model.state.world import World
from conformance.model.tracefs import enabling, files
from conformance.model.tracing import event_files, instances
from conformance.model.user_events import status_file


def read(world: World, file: OpenFile, count: int) -> bytes:
    """read(2) of a descriptor: the text is made at position 0 and kept (seq_read)."""
    if is_switch(world, file.path):
        data = _switch_text(world, file)[file.position : file.position + count]
        file.position += len(data)
        return data
    if files.file_in(file.path) in ("format", "filter", "trigger"):
        # f_start(), event_filter_read(), trigger_start(): ENODEV for an event gone.
        _event_of(world, file)
    if file.path != files.STATUS:
        raise NotModelled(f"read(2) of {file.path}")
    if file.position == 0:
        file.text = status_file.text(world).encode("latin-1")
    data = file.text[file.position : file.position + count]
    file.position += len(data)
    return data


def is_switch(world: World, path: str) -> bool:
    """Whether a path, of an event that may be gone, is an `enable` of one or several."""
    try:
        local = instances.locate(world, path)[1]
    except Errno:
        return False
    return enabling.is_enable(local) or files.file_in(local) == "enable"


def is_filter(world: World, path: str) -> bool:
    """Whether a path, of an event that may be gone, is its `filter`."""
    try:
        return files.file_in(instances.locate(world, path)[1]) == "filter"
    except Errno:
        return False


def _switch_text(world: World, file: OpenFile) -> bytes:
    """event_enable_read(), system_enable_read().  Raises Errno("ENODEV") for an event gone."""
    name, local = instances.locate(world, file.path)
    if enabling.is_enable(local):
        return enabling.group_text(world, name, local)
    return event_files.enable_text(world, _event_of(world, file).file_in(name)).encode()


def _event_of(world: World, file: OpenFile) -> Event:
    """event_file_file(): the event whose file was opened.  Raises Errno("ENODEV")."""
    event = None if file.event is None else world.table.find(file.event)
    if event is None:
        raise Errno("ENODEV")
    return event


def write(world: World, file: OpenFile, text: str) -> int:
    """write(2) of the descriptor of an `enable` or `filter`: the position moves on, for nothing."""
    name, local = instances.locate(world, file.path)
    if files.file_in(local) == "filter":
        files.write_event_file(world, _event_of(world, file), "filter", text, name)
        file.position += len(text)
        return len(text)
    on = enabling.switch(text)
    if enabling.is_enable(local):
        file.position += len(text)
        return enabling.set_group(world, name, local, on=on, count=len(text))
    event_files.enable(world, _event_of(world, file), name, on=on)
    file.position += len(text)
    return len(text)


def seek(world: World, file: OpenFile, offset: int, whence: int) -> int:
    """lseek(2) of a descriptor (seq_lseek): moving makes the text anew, the end is unknown."""
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
