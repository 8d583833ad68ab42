"""The helper module uevt_probe, whose probe is neither ftrace nor perf.

Source: fixtures/modules/uevt_probe/uevt_probe.c, which documents the parameters.
"""

from __future__ import annotations

from conformance.abi import grammar
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.state.world import World

PARAMETERS = "/sys/module/uevt_probe/parameters"
ATTACH = f"{PARAMETERS}/attach"
DETACH = f"{PARAMETERS}/detach"


def attached_event(world: World) -> Event | None:
    """The event that the probe is attached to."""
    return next((event for event in world.table.events if event.other_attached), None)


def attach(world: World, text: str) -> None:
    """uevt_attach(): the status stays, but a write finds the tracepoint enabled."""
    if attached_event(world) is not None:
        raise NotModelled("the probe is attached already")
    name = text.removesuffix("\n")
    world.table.tracepoint(grammar.SYSTEM, name).other_attached = True


def detach(world: World) -> None:
    """uevt_detach(): the status stays until a tracer registers or unregisters."""
    event = attached_event(world)
    if event is None:
        raise Errno("ENOENT")
    event.other_attached = False
