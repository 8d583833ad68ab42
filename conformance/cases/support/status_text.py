"""The text of user_events_status, which ends with the maximum on some kernels."""

from conformance.client.user_events import UserEvents

# The maximum number of events with one page, and with two.
_ONE_PAGE = {"byte-status": "Max: 4096\n", "bit-status": "Max: 32768\n"}
_TWO_PAGES = {"byte-status": "Max: 8192\n", "bit-status": "Max: 65536\n"}


def without_maximum(ue: UserEvents, text: str) -> str:
    """A text without the line of the maximum, which must be correct and last."""
    rooms = _TWO_PAGES if ue.profile.has("two_status_pages") else _ONE_PAGE
    room = rooms.get(ue.profile.generation, "")
    assert text.endswith(room)
    return text.removesuffix(room)


def whole_status(ue: UserEvents) -> str:
    """user_events_status without the line of the maximum."""
    return without_maximum(ue, ue.tracefs.status(whole=True))


def used_by(ue: UserEvents) -> str:
    """The tracers of the event ``ue.name()`` in user_events_status, "" for none."""
    (line,) = ue.tracefs.status().splitlines()
    name, _, users = line.partition(" # Used by ")
    assert name.rpartition(":")[2] == ue.name()
    return users


def tracepoints(ue: UserEvents) -> list[str]:
    """Names of the program's tracepoints, as user_events_status lists them."""
    return [line.partition(" ")[0] for line in ue.tracefs.status().splitlines()]


def unique_id(tracepoint: str) -> int:
    """The id in the name of a multi-format tracepoint; a later one has a larger id."""
    return int(tracepoint.rpartition(".")[2], 16)
