"""QEMU's monitor (QMP): save and resume the machine, inspect it, interrupt it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from qemu.qmp import ExecuteError, QMPClient, QMPError

from host.deadline import Deadline
from vm.errors import HostTrouble

_Answer = TypeVar("_Answer")

#: The id of the console's chardev.
CONSOLE = "console"
#: Polling interval and time limit for disconnecting, in seconds.
_POLL_S = 0.002
_DISCONNECT_S = 2.0
#: Bytes per second: lifts QEMU's default limit, which is meant for networks.
_BANDWIDTH = 1 << 40
_MIGRATING = ("setup", "active", "device", "pre-switchover", "wait-unplug", "cancelling")


class MonitorTrouble(HostTrouble):
    """QEMU refused a command, gave no answer in time, or has hung up."""


class StillStopped(MonitorTrouble):
    """The machine was stopped and could not be resumed."""


class Monitor:
    """A QMP conversation over a socket pair; connects on the first command.

    All methods raise MonitorTrouble.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._client: QMPClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def close(self) -> None:
        """Hang up.  Idempotent."""
        loop, self._loop = self._loop, None
        client, self._client = self._client, None
        try:
            if loop is not None and client is not None:
                with suppress(QMPError, OSError, EOFError, TimeoutError):
                    loop.run_until_complete(asyncio.wait_for(client.disconnect(), _DISCONNECT_S))
        finally:
            if loop is not None:
                loop.close()
            self._end.close()

    def save(self, descriptor: int, deadline: Deadline, resume_s: float) -> None:
        """Stop the machine, write its state to a file and resume it, saved or not.

        Resuming has its own limit of `resume_s` seconds.  Raises StillStopped if it fails.
        """
        try:
            self._run(self._save(descriptor), deadline)
        except MonitorTrouble:
            self._resume_stopped(resume_s)
            raise
        self._resume_stopped(resume_s)

    def resume(self, deadline: Deadline) -> None:
        """Wait until the incoming state is loaded, then resume the machine."""
        self._run(self._resume(), deadline)

    def status(self, deadline: Deadline) -> str:
        """QEMU's status of the machine: running, paused, internal-error, io-error …"""
        return str(self._run(self._query("query-status"), deadline).get("status"))

    def registers(self, deadline: Deadline) -> str:
        """The registers of all processors in QEMU's text format."""
        line: dict[str, object] = {"command-line": "info registers -a"}
        return str(self._run(self._execute("human-monitor-command", line), deadline))

    def nmi(self, deadline: Deadline) -> None:
        """Send a non-maskable interrupt to every processor."""
        self._run(self._execute("inject-nmi"), deadline)

    def press_break(self, line: Path, console: Path, deadline: Deadline) -> None:
        """Send BREAK to the console's serial port and make it read from the file `line`.

        Output still goes to `console`.
        """
        files = {"in": str(line), "out": str(console), "append": True}
        self._run(self._break({"type": "file", "data": files}), deadline)

    def _resume_stopped(self, seconds: float) -> None:
        try:
            self._run(self._continue(), Deadline(seconds, "resumption"))
        except MonitorTrouble as trouble:
            raise StillStopped(f"{trouble}") from trouble

    async def _break(self, backend: dict[str, object]) -> None:
        await self._execute("chardev-change", {"id": CONSOLE, "backend": backend})
        await self._execute("chardev-send-break", {"id": CONSOLE})

    async def _save(self, descriptor: int) -> None:
        client = await self._connected()
        await client.execute("stop")
        client.send_fd_scm(descriptor)
        await client.execute("getfd", {"fdname": "state"})
        await client.execute("migrate-set-parameters", {"max-bandwidth": _BANDWIDTH})
        await client.execute("migrate", {"uri": "fd:state"})
        found = await self._migration_end()
        if found.get("status") != "completed":
            why = found.get("error-desc", found.get("status"))
            raise MonitorTrouble(f"QEMU could not save the machine's state: {why}")

    async def _continue(self) -> None:
        if (await self._query("query-migrate")).get("status") in _MIGRATING:
            # QEMU refuses "cont" near the end of a migration.
            await self._execute("migrate_cancel")
            await self._migration_end()
        await self._execute("cont")

    async def _migration_end(self) -> Mapping[str, object]:
        """Wait for the end of a migration; the status is missing if there was none."""
        while (found := await self._query("query-migrate")).get("status") in _MIGRATING:
            await asyncio.sleep(_POLL_S)
        return found

    async def _resume(self) -> None:
        while (await self._query("query-status"))["status"] == "inmigrate":
            await asyncio.sleep(_POLL_S)
        await self._execute("cont")

    async def _query(self, command: str) -> Mapping[str, object]:
        answer = await self._execute(command)
        if not isinstance(answer, Mapping):
            raise MonitorTrouble(f"QEMU answered {command} with {answer!r}")
        return answer

    async def _execute(self, command: str, arguments: dict[str, object] | None = None) -> object:
        return await (await self._connected()).execute(command, arguments)

    async def _connected(self) -> QMPClient:
        if self._client is None:
            client = QMPClient("uevt")
            await client.connect(self._end)
            self._client = client
        return self._client

    def _run(self, work: Awaitable[_Answer], deadline: Deadline) -> _Answer:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, deadline.remaining()))
        except ExecuteError as error:
            raise MonitorTrouble(f"QEMU refused: {error}") from None
        except TimeoutError:
            raise MonitorTrouble(
                f"QEMU gave no {deadline.what} within {deadline.seconds:g} s"
            ) from None
        except (QMPError, OSError, EOFError) as error:
            raise MonitorTrouble(f"QEMU's monitor: {error}") from None
