"""Eprobes on user events."""

from conformance.client.tracefs import KPROBES, SYSTEM
from conformance.client.user_events import UserEvents
from conformance.ops import Observation


def add_eprobe(
    ue: UserEvents, arguments: str = "", *, event: str | None = None, system: str = SYSTEM
) -> Observation:
    """Create an eprobe on an event, by default on ``name()``."""
    source = f"{system}.{ue.name() if event is None else event}"
    command = f"e:{KPROBES}/{ue.name('p')} {source} {arguments}".rstrip()
    return ue.tracefs.command(f"{command}\n")


def remove_eprobe(ue: UserEvents) -> Observation:
    """Remove the eprobe."""
    return ue.tracefs.command(f"-:{KPROBES}/{ue.name('p')}\n")


def enable_eprobe(ue: UserEvents) -> Observation:
    """Enable the eprobe in ftrace."""
    return ue.tracefs.enable(ue.name("p"), system=KPROBES)


def disable_eprobe(ue: UserEvents) -> Observation:
    """Disable the eprobe in ftrace."""
    return ue.tracefs.disable(ue.name("p"), system=KPROBES)
