"""What can go wrong with a machine, by who must act.

HostTrouble is for whoever runs the host; GuestTrouble is about the kernel that was booted or the
agent in it, and says nothing about who is right.  `hint` says what to do, `console` holds the
slice of the guest's console that belongs to the error, where there is one, and `findings` what the
kernel reported there.
"""

from __future__ import annotations

import signal
from enum import StrEnum
from typing import TYPE_CHECKING

from host.errors import UevtError

if TYPE_CHECKING:
    from vm.kernel_log.reports import Finding


class Party(StrEnum):
    """Who keeps a guest from answering, or from coming up."""

    KERNEL = "kernel"
    AGENT = "agent"
    HOST = "host"


class VmError(UevtError):
    """Anything this package raises on purpose."""

    def __init__(self, message: str, *, hint: str = "", console: str = "") -> None:
        super().__init__(message, hint)
        self.console = console
        self.findings: tuple[Finding, ...] = ()


class HostTrouble(VmError):
    """The host cannot do its part."""


class QemuMissing(HostTrouble):
    """No QEMU for this architecture on PATH."""


class VirtmeMissing(HostTrouble):
    """virtme-ng cannot be run, or no longer prints a command that we understand."""


class CommandLineTooLong(HostTrouble):
    """The kernel's command line is longer than it takes."""


class QemuDied(HostTrouble):
    """QEMU ended by a signal or with an error: not the guest's doing."""

    def __init__(self, returncode: int, said: str, *, console: str = "") -> None:
        self.returncode = returncode
        how = _signal_name(-returncode) if returncode < 0 else f"exit status {returncode}"
        lines = said.strip().splitlines()
        super().__init__(
            f"QEMU ended by {how}" + (f": {lines[-1]}" if lines else ""),
            hint="look for the out-of-memory killer, or run the command in qemu.log by hand",
            console=console,
        )


class QemuStuck(HostTrouble):
    """QEMU does not run, or has stopped the machine: the guest cannot answer."""


class DiskFull(HostTrouble):
    """No space where the console is recorded."""


class BootFailed(HostTrouble):
    """The kernel did not come up to the point where the agent answers; `phase` says how far.

    `party` is who has to act; `frames` are the functions in which the kernel was found, if it was,
    and `where` says so.
    """

    party = Party.HOST
    frames: tuple[str, ...] = ()
    where = ""

    def __init__(self, message: str, *, phase: str, hint: str = "", console: str = "") -> None:
        super().__init__(message, hint=hint, console=console)
        self.phase = phase


class NoRoot(BootFailed):
    """The kernel has no driver for its root: they are modules, or left out."""


class AcceleratorTrouble(HostTrouble):
    """The accelerator could not even be tried."""


class GuestTrouble(VmError):
    """The guest did something that ends the conversation, or part of it."""


class GuestCrashed(GuestTrouble):
    """The kernel panicked, oopsed or reset; `evidence` is the line that says so."""

    def __init__(self, evidence: str, *, console: str = "") -> None:
        super().__init__(f"the guest crashed: {evidence}", console=console)
        self.evidence = evidence


class GuestOutOfMemory(GuestTrouble):
    """The guest's kernel killed a process of ours for want of memory."""


class ChannelBroken(GuestTrouble):
    """A corrupt frame, or an end of the channel that the console does not explain."""


class NoAnswer(GuestTrouble):
    """A deadline passed; the message says what was waited for, and how long.

    `frames` are the functions in which the kernel was found, if it was, and `where` says so.
    """

    frames: tuple[str, ...] = ()
    where = ""


class AgentStuck(GuestTrouble):
    """A deadline passed while the kernel waited for programs, and not they for it."""


class ActorDied(GuestTrouble):
    """An actor ended that nobody has ended; `status` is its wait status, None if unknown."""

    def __init__(self, actor: str, status: int | None, when: str = "before it answered") -> None:
        self.actor = actor
        self.status = status
        how = "in an unknown way" if status is None else _wait_status(status)
        super().__init__(f"actor {actor!r} ended {how} {when}")


class CallRefused(GuestTrouble):
    """The agent could not make sense of a call: a mistake in the program, nothing was judged."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _wait_status(status: int) -> str:
    if status & 0x7F:
        return f"by {_signal_name(status & 0x7F)}"
    return f"with exit status {status >> 8}"
