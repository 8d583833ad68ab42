"""The text of user_events_status, whose last line only some kernels have."""

from __future__ import annotations

from conformance.client.user_events import UserEvents

# How many events there is room for in a status page of one page, and in one of two.
_ONE_PAGE = {"byte-status": "Max: 4096\n", "bit-status": "Max: 32768\n"}
_TWO_PAGES = {"byte-status": "Max: 8192\n", "bit-status": "Max: 65536\n"}


def without_maximum(ue: UserEvents, text: str) -> str:
    """A text less the line about room for events, which must be right and last."""
    rooms = _TWO_PAGES if ue.profile.has("two_status_pages") else _ONE_PAGE
    room = rooms.get(ue.profile.generation, "")
    assert text.endswith(room)
    return text.removesuffix(room)


def whole_status(ue: UserEvents) -> str:
    """All of user_events_status but for that line."""
    return without_maximum(ue, ue.tracefs.status(whole=True))


def used_by(ue: UserEvents) -> str:
    """Who uses the event that is called ``ue.name()``, as the text says; "" for nobody."""
    (line,) = ue.tracefs.status().splitlines()
    name, _, users = line.partition(" # Used by ")
    assert name.rpartition(":")[2] == ue.name()
    return users


def tracepoints(ue: UserEvents) -> list[str]:
    """Names of the program's tracepoints, as user_events_status lists them."""
    return [line.partition(" ")[0] for line in ue.tracefs.status().splitlines()]
