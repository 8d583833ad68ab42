"""One run of QEMU with its monitor and the agent's channels, from power-on to power-off."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from vm.agent.agent import Agent
from vm.agent.channel import Channel
from vm.qemu.command_line import MachineSpec, port_names, qemu_argv
from vm.qemu.process import Qemu
from vm.qemu.qmp import Monitor


class PowerCycle(Struct, frozen=True):
    """A running QEMU, its monitor, the conversation with the agent, and our ends of the streams."""

    qemu: Qemu
    monitor: Monitor
    agent: Agent
    streams: tuple[socket.socket, ...] = ()

    @classmethod
    def on(
        cls, spec: MachineSpec, *, console: Path, log: Path, state: int | None = None
    ) -> PowerCycle:
        """Start QEMU without waiting; `state` is the descriptor of a snapshot to restore.

        Raises HostTrouble, OSError.
        """
        names = port_names(spec)
        with ExitStack() as theirs, ExitStack() as ours:
            pairs = [socket.socketpair() for _ in range(len(names) + spec.streams + 1)]
            for our_end, their_end in pairs:
                ours.enter_context(our_end)
                theirs.enter_context(their_end)
            monitor, *channels = [their_end.fileno() for _, their_end in pairs]
            argv = qemu_argv(spec, console=console, channels=channels, monitor=monitor, state=state)
            passed: Sequence[int] = (*channels, monitor)
            qemu = Qemu(argv, log, passed if state is None else (*passed, state))
            ours.pop_all()
        monitor_end, *port_ends = [our_end for our_end, _ in pairs]
        channel_ends, streams = port_ends[: len(names)], port_ends[len(names) :]
        agent = Agent([Channel(end) for end in channel_ends], names, restored=state is not None)
        return cls(qemu, Monitor(monitor_end), agent, tuple(streams))

    def off(self) -> None:
        """Kill QEMU and close the channels.  Idempotent."""
        try:
            # First, because closing takes time and may be interrupted.
            self.qemu.kill()
        finally:
            self.close_channels()

    def close_channels(self) -> None:
        """Close our ends of the monitor and the channels.  Idempotent."""
        for stream in self.streams:
            stream.close()
        try:
            self.agent.close()
        finally:
            self.monitor.close()
