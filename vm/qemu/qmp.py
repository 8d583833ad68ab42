"""QEMU's monitor: the few things that a guest cannot be asked for."""

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

#: QEMU's name for the end of the console.
CONSOLE = "console"
#: Between two looks at how far QEMU is, seconds.
_LOOK = 0.002
_CLOSING = 2.0
#: Without a limit QEMU takes its time, as if the state went over a network; bytes per second.
_BANDWIDTH = 1 << 40
_UNDER_WAY = ("setup", "active", "device", "pre-switchover", "wait-unplug", "cancelling")


class MonitorTrouble(HostTrouble):
    """QEMU refused a command, gave no answer in time, or has hung up."""


class StillStopped(MonitorTrouble):
    """The machine was stopped, and could not be made to go on."""


class Monitor:
    """A conversation with one QEMU over our end of a socket pair.

    It begins with the first command.  All methods raise MonitorTrouble.
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
                    loop.run_until_complete(asyncio.wait_for(client.disconnect(), _CLOSING))
        finally:
            if loop is not None:
                loop.close()
            self._end.close()

    def save(self, descriptor: int, deadline: Deadline, going_on: float) -> None:
        """Stop the machine, write its state to a file, and let it go on, saved or not.

        To go on it has so many seconds of its own.  Raises StillStopped if it does not.
        """
        try:
            self._run(self._save(descriptor), deadline)
        except MonitorTrouble:
            self._let_go_on(going_on)
            raise
        self._let_go_on(going_on)

    def resume(self, deadline: Deadline) -> None:
        """Wait until a machine has taken over the state that it was started with; let it go on."""
        self._run(self._resume(), deadline)

    def status(self, deadline: Deadline) -> str:
        """What QEMU says of the machine: running, paused, internal-error, io-error …"""
        return str(self._run(self._ask("query-status"), deadline).get("status"))

    def registers(self, deadline: Deadline) -> str:
        """The registers of all processors, as QEMU prints them for people."""
        shown = self._run(self._human("info registers -a"), deadline)
        return str(shown)

    def nmi(self, deadline: Deadline) -> None:
        """Send every processor a non-maskable interrupt."""
        self._run(self._execute("inject-nmi"), deadline)

    def press_break(self, line: Path, console: Path, deadline: Deadline) -> None:
        """Send BREAK to the console's serial port, which reads from the file `line` from then on.

        It goes on writing to `console`.
        """
        files = {"in": str(line), "out": str(console), "append": True}
        self._run(self._break({"type": "file", "data": files}), deadline)

    async def _break(self, backend: dict[str, object]) -> None:
        await self._execute("chardev-change", {"id": CONSOLE, "backend": backend})
        await self._execute("chardev-send-break", {"id": CONSOLE})

    async def _human(self, line: str) -> object:
        return await self._execute("human-monitor-command", {"command-line": line})

    async def _execute(self, command: str, arguments: dict[str, object] | None = None) -> object:
        return await (await self._connected()).execute(command, arguments)

    def _let_go_on(self, seconds: float) -> None:
        try:
            self._run(self._go_on(), Deadline(seconds, "machine that goes on"))
        except MonitorTrouble as trouble:
            raise StillStopped(f"{trouble}") from trouble

    async def _save(self, descriptor: int) -> None:
        client = await self._connected()
        await client.execute("stop")
        client.send_fd_scm(descriptor)
        await client.execute("getfd", {"fdname": "state"})
        await client.execute("migrate-set-parameters", {"max-bandwidth": _BANDWIDTH})
        await client.execute("migrate", {"uri": "fd:state"})
        found = await self._migrated()
        if found.get("status") != "completed":
            why = found.get("error-desc", found.get("status"))
            raise MonitorTrouble(f"QEMU could not save the machine's state: {why}")

    async def _go_on(self) -> None:
        client = await self._connected()
        if (await self._ask("query-migrate")).get("status") in _UNDER_WAY:
            # QEMU refuses to go on in the end of it.
            await client.execute("migrate_cancel")
            await self._migrated()
        await client.execute("cont")

    async def _migrated(self) -> Mapping[str, object]:
        """How the writing of a state ended; no status if none was begun."""
        while (found := await self._ask("query-migrate")).get("status") in _UNDER_WAY:
            await asyncio.sleep(_LOOK)
        return found

    async def _resume(self) -> None:
        client = await self._connected()
        while (await self._ask("query-status"))["status"] == "inmigrate":
            await asyncio.sleep(_LOOK)
        await client.execute("cont")

    async def _ask(self, command: str) -> Mapping[str, object]:
        answer = await (await self._connected()).execute(command)
        if not isinstance(answer, Mapping):
            raise MonitorTrouble(f"QEMU answered {command} with {answer!r}")
        return answer

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
