"""The helper module's probe: one listener that is neither ftrace nor perf.

Source: fixtures/modules/uevt_probe/uevt_probe.c, which says what its two parameters do.
"""

from __future__ import annotations

from conformance.abi import grammar
from conformance.model.errors import Errno
from conformance.model.state.events import Event
from conformance.model.state.world import World

PARAMETERS = "/sys/module/uevt_probe/parameters"
ATTACH = f"{PARAMETERS}/attach"
DETACH = f"{PARAMETERS}/detach"


def attached(world: World) -> Event | None:
    """The event that has the probe."""
    return next((event for event in world.table.events if event.other_attached), None)


def attach(world: World, text: str) -> None:
    """uevt_attach(): nothing is told to anybody, but writes find a listener."""
    name = text.removesuffix("\n")
    before = attached(world)
    if before is not None:
        raise Errno("EEXIST" if before.tracepoint == name else "EBUSY")
    world.table.tracepoint(grammar.SYSTEM, name).other_attached = True


def detach(world: World) -> None:
    """uevt_detach(): status and words keep what they say until a tracer comes or goes."""
    event = attached(world)
    if event is None:
        raise Errno("ENOENT")
    event.other_attached = False


def shown(world: World) -> str:
    """What reading the parameter `attach` shows."""
    event = attached(world)
    return f"{event.tracepoint if event is not None else ''}\n"
