"""Errors of a machine, by who must act.

HostTrouble concerns the host.  GuestTrouble concerns the booted kernel or the agent in it and
implies nothing about conformance.
"""

from __future__ import annotations

import signal
from enum import StrEnum
from typing import TYPE_CHECKING

from host.errors import UevtError

if TYPE_CHECKING:
    from vm.kernel_log.reports import Finding


class Party(StrEnum):
    """The party that keeps a guest from answering or booting."""

    KERNEL = "kernel"
    AGENT = "agent"
    HOST = "host"


class VmError(UevtError):
    """Any error of this package.

    `console` is the slice of the guest's console that belongs to the error, `findings` are the
    kernel reports in it.
    """

    def __init__(self, message: str, *, hint: str = "", console: str = "") -> None:
        super().__init__(message, hint)
        self.console = console
        self.findings: tuple[Finding, ...] = ()


class HostTrouble(VmError):
    """The host cannot do its part."""


class QemuMissing(HostTrouble):
    """No QEMU for this architecture on PATH."""


class VirtmeMissing(HostTrouble):
    """virtme-ng is missing, or prints a command that cannot be parsed."""


class CommandLineTooLong(HostTrouble):
    """The kernel command line exceeds COMMAND_LINE_SIZE."""


class QemuDied(HostTrouble):
    """QEMU ended by a signal or with an error, not because of the guest."""

    def __init__(self, returncode: int, output: str, *, console: str = "") -> None:
        self.returncode = returncode
        how = _signal_name(-returncode) if returncode < 0 else f"exit status {returncode}"
        lines = output.strip().splitlines()
        super().__init__(
            f"QEMU ended by {how}" + (f": {lines[-1]}" if lines else ""),
            hint="look for the out-of-memory killer, or run the command in qemu.log by hand",
            console=console,
        )


class QemuStuck(HostTrouble):
    """QEMU does not run, or has stopped the machine."""


class DiskFull(HostTrouble):
    """No space for the console log."""


class BootFailed(HostTrouble):
    """The kernel did not reach the point where the agent answers.

    `phase` is the last boot phase on the console, `party` has to act.  `frames` is the kernel stack
    found by the post-mortem, if any, and `where` describes it.
    """

    party = Party.HOST
    frames: tuple[str, ...] = ()
    where = ""

    def __init__(self, message: str, *, phase: str, hint: str = "", console: str = "") -> None:
        super().__init__(message, hint=hint, console=console)
        self.phase = phase


class NoRoot(BootFailed):
    """The kernel cannot mount its root: the drivers are modules or not configured."""


class AcceleratorTrouble(HostTrouble):
    """The accelerator could not be tried."""


class GuestTrouble(VmError):
    """The guest ended the conversation, or part of it."""


class GuestCrashed(GuestTrouble):
    """The kernel panicked, oopsed or reset; `evidence` is the console line that shows it."""

    def __init__(self, evidence: str, *, console: str = "") -> None:
        super().__init__(f"the guest crashed: {evidence}", console=console)
        self.evidence = evidence


class GuestOutOfMemory(GuestTrouble):
    """The OOM killer of the guest killed a process of the agent."""


class ChannelBroken(GuestTrouble):
    """A corrupt frame, or an end of the channel that the console does not explain."""


class NoAnswer(GuestTrouble):
    """A deadline expired.

    `frames` is the kernel stack found by the post-mortem, if any, and `where` describes it.
    """

    frames: tuple[str, ...] = ()
    where = ""


class AgentStuck(GuestTrouble):
    """A deadline expired while the kernel was idle: the agent's processes are stuck."""


class ActorDied(GuestTrouble):
    """An actor ended unexpectedly; `status` is its wait status, None if unknown."""

    def __init__(self, actor: str, status: int | None, when: str = "before it answered") -> None:
        self.actor = actor
        self.status = status
        how = "in an unknown way" if status is None else _wait_status(status)
        super().__init__(f"actor {actor!r} ended {how} {when}")


class CallRefused(GuestTrouble):
    """The agent rejected a malformed call: a mistake in the program, not in the kernel."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _wait_status(status: int) -> str:
    if status & 0x7F:
        return f"by {_signal_name(status & 0x7F)}"
    return f"with exit status {status >> 8}"
