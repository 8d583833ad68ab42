"""Registrations as several files of cases make them: by hand, refused, unprivileged, to stay."""

from __future__ import annotations

from conformance.abi.uapi import USER_REG
from conformance.client.data_file import DataFile, Registration, Word
from conformance.client.user_events import UserEvents

PERSIST = 1
MULTI_FORMAT = 2
UNKNOWN_FLAG = 4
# What write_index holds before the call and keeps when the call fails.
UNTOUCHED = 0xFFFF_FFFF


def error_of(registration: Registration) -> str:
    """The error of a registration that must not have reported a write index."""
    assert registration.index == UNTOUCHED
    return registration.errno


def packed_reg(ue: UserEvents, word: Word, definition: str, **members: int) -> bytes:
    """A user_reg for a word and definition; members given by name replace what fits."""
    right = {
        "size": 28,
        "enable_size": word.size,
        "enable_addr": word.address,
        "name_args": ue.process.place(definition.encode() + b"\0"),
    }
    return USER_REG.pack({**right, **members})


def unprivileged_data(ue: UserEvents) -> DataFile:
    """The data file, opened by a process that then gave up all capabilities."""
    data = ue.open_data()
    ue.process.setuid(1000)
    return data


def persist_flag(ue: UserEvents) -> int:
    """The flags of a registration whose event stays when nobody uses it any more."""
    return ue.dated("auto_delete", since=PERSIST, before=0)


def leave_event(ue: UserEvents, definition: str) -> None:
    """Let a process of its own register an event that stays, and exit."""
    process = ue.new_process()
    process.open_data().register(definition, flags=persist_flag(ue))
    process.exit()
