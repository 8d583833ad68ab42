"""Probes on user events, as the cases about them make them."""

from __future__ import annotations

from conformance.client.tracefs import KPROBES, SYSTEM
from conformance.client.user_events import UserEvents
from conformance.ops import Observation


def add_eprobe(
    ue: UserEvents, arguments: str = "", *, event: str | None = None, system: str = SYSTEM
) -> Observation:
    """A probe on an event, by default on the one called ``name()``."""
    source = f"{system}.{ue.name() if event is None else event}"
    command = f"e:{KPROBES}/{ue.name('p')} {source} {arguments}".rstrip()
    return ue.tracefs.command(f"{command}\n")


def remove_eprobe(ue: UserEvents) -> Observation:
    """Take the probe away."""
    return ue.tracefs.command(f"-:{KPROBES}/{ue.name('p')}\n")


def enable_eprobe(ue: UserEvents) -> Observation:
    """Make ftrace listen to the probe."""
    return ue.tracefs.enable(ue.name("p"), system=KPROBES)


def disable_eprobe(ue: UserEvents) -> Observation:
    """Make ftrace stop listening to it."""
    return ue.tracefs.disable(ue.name("p"), system=KPROBES)
