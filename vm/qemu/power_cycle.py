"""One run of QEMU with the ends of everything that leads into it: from power-on to power-off."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from vm.agent.agent import Agent
from vm.agent.channel import Channel
from vm.qemu.command_line import MachineSpec, port_names, qemu_argv
from vm.qemu.process import Qemu
from vm.qemu.qmp import Monitor


@dataclass(frozen=True, slots=True)
class PowerCycle:
    """A QEMU that runs, its monitor, and the agent's end of the conversation."""

    qemu: Qemu
    monitor: Monitor
    agent: Agent

    @classmethod
    def on(
        cls, spec: MachineSpec, *, console: Path, log: Path, state: int | None = None
    ) -> PowerCycle:
        """Start QEMU, from a saved state if its file is given as a descriptor; returns at once.

        Raises HostTrouble, OSError.
        """
        names = port_names(spec)
        with ExitStack() as opened, ExitStack() as ours:
            monitor_pair, *pairs = [socket.socketpair() for _ in range(len(names) + 1)]
            for mine, theirs in (monitor_pair, *pairs):
                ours.enter_context(mine)
                opened.enter_context(theirs)
            channels = [theirs.fileno() for _, theirs in pairs]
            argv = qemu_argv(
                spec,
                console=console,
                channels=channels,
                monitor=monitor_pair[1].fileno(),
                state=state,
            )
            passed: Sequence[int] = (*channels, monitor_pair[1].fileno())
            qemu = Qemu(argv, log, passed if state is None else (*passed, state))
            ours.pop_all()
        agent = Agent([Channel(mine) for mine, _ in pairs], names, restored=state is not None)
        return cls(qemu, Monitor(monitor_pair[0]), agent)

    def off(self) -> None:
        """End the guest at once: nothing in it needs saving.  Idempotent."""
        try:
            # First: the rest takes time, in which we may be interrupted.
            self.qemu.kill()
        finally:
            self.leave()

    def leave(self) -> None:
        """Let go of our ends of what leads into it, which another process has too.  Idempotent."""
        try:
            self.agent.close()
        finally:
            self.monitor.close()
