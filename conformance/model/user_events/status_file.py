"""The text of user_events_status: trace_events_user.c:user_seq_show."""

from __future__ import annotations

from conformance.abi.profile import Generation
from conformance.model.state import status_page
from conformance.model.state.events import Event
from conformance.model.state.world import World


def text(world: World) -> str:
    """All events in hash order, then the totals."""
    lines = []
    busy = 0
    for event in world.table.in_hash_order():
        busy += bool(_shown_status(world, event))
        lines.append(line_of(world, event))
    totals = f"\nActive: {len(lines)}\nBusy: {busy}\n"
    if world.status_page is not None:
        totals += f"Max: {status_page.capacity(world.profile)}\n"
    return "".join(lines) + totals


def line_of(world: World, event: Event) -> str:
    """The line of an event."""
    status = _shown_status(world, event)
    flag = "FLAG:BPF_ITER" if event.bpf_iter else ""
    shown = " ".join(filter(None, (status_page.used_by(status), flag)))
    index = f"{event.index}:" if world.status_page is not None else ""
    return f"{index}{event.tracepoint}{f' # {shown}' if shown else ''}\n"


def _shown_status(world: World, event: Event) -> int:
    """The status that the text shows; 5.18 to 6.0 read it back from the page."""
    if world.profile.generation is Generation.BYTE_STATUS:
        assert world.status_page is not None
        return world.status_page.byte(event.index)
    return event.status
