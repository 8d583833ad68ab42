"""Registrations by hand, refused, unprivileged, and persistent."""

from conformance.abi.uapi import USER_REG
from conformance.client.caller import Word
from conformance.client.data_file import DataFile, Registration
from conformance.client.user_events import UserEvents

PERSIST = 1
MULTI_FORMAT = 2
UNKNOWN_FLAG = 4
# write_index before the call; a failed call keeps it.
UNTOUCHED = 0xFFFF_FFFF


def error_of(registration: Registration) -> str:
    """Errno of a failed registration, which must not have stored a write index."""
    assert registration.index == UNTOUCHED
    return registration.errno


def packed_reg(ue: UserEvents, word: Word, definition: str, **members: int) -> bytes:
    """A packed user_reg for a word and a definition; ``members`` override."""
    right = {
        "size": 28,
        "enable_size": word.size,
        "enable_addr": word.address,
        "name_args": ue.process.place(definition.encode() + b"\0"),
    }
    return USER_REG.pack({**right, **members})


def unprivileged_data(ue: UserEvents) -> DataFile:
    """Open the data file, then drop all capabilities."""
    data = ue.open_data()
    ue.process.setuid(1000)
    return data


def persist_flag(ue: UserEvents) -> int:
    """Flags that keep the event without references."""
    return ue.dated("auto_delete", since=PERSIST, before=0)


def leave_event(ue: UserEvents, definition: str) -> None:
    """Register an event that stays in a process that exits."""
    process = ue.new_process()
    process.open_data().register(definition, flags=persist_flag(ue))
    process.exit()
