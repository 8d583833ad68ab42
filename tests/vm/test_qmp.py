"""QEMU's monitor, played by a thread: the guest resumes even if its snapshot fails."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from host.deadline import Deadline
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.qmp import Monitor, MonitorTrouble, StillStopped

Answer = Callable[[str, list[str]], dict[str, Any] | None]


class Player:
    """Answers commands with what `answer` returns; None is no answer."""

    def __init__(self, answer: Answer) -> None:
        self.commands: list[str] = []
        self._answer = answer
        self.ours, self._theirs = socket.socketpair()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def _play(self) -> None:
        version = {"qemu": {"major": 7, "minor": 2, "micro": 0}, "package": ""}
        self._send({"QMP": {"version": version, "capabilities": []}})
        unread = ""
        while data := self._theirs.recv(1 << 16):
            # Objects follow one another without a separator; a descriptor comes with a blank.
            unread = (unread + data.decode()).lstrip()
            while unread:
                message, end = json.JSONDecoder().raw_decode(unread)
                unread = unread[end:].lstrip()
                self._reply(message)

    def _reply(self, message: dict[str, Any]) -> None:
        self.commands.append(message["execute"])
        answer = self._answer(message["execute"], self.commands)
        if answer is not None:
            named = {"id": message["id"]} if "id" in message else {}
            self._send({"return": answer} | named)

    def _send(self, message: dict[str, Any]) -> None:
        self._theirs.sendall(json.dumps(message).encode() + b"\r\n")

    def close(self) -> None:
        """Call it after the other end was closed."""
        self._thread.join(5)
        self._theirs.close()


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    number = os.open(tmp_path / "state", os.O_RDWR | os.O_CREAT)
    yield number
    os.close(number)


def _save(answer: Answer, descriptor: int) -> tuple[list[str], MonitorTrouble | None]:
    player = Player(answer)
    monitor = Monitor(player.ours)
    trouble = None
    try:
        monitor.save(descriptor, Deadline(0.3, "saved state"), 0.3)
    except MonitorTrouble as caught:
        trouble = caught
    monitor.close()
    player.close()
    return player.commands, trouble


def test_save(descriptor: int) -> None:
    def answer(command: str, commands: list[str]) -> dict[str, Any]:
        return {"status": "completed"} if command == "query-migrate" else {}

    commands, trouble = _save(answer, descriptor)
    assert trouble is None
    assert "migrate_cancel" not in commands
    assert (commands.index("stop") < commands.index("migrate"), commands[-1]) == (True, "cont")


@pytest.mark.parametrize(
    ("progress", "silent", "kind", "message"),
    [
        ({"status": "active"}, "", MonitorTrouble, "no saved state within 0.3 s"),
        ({"status": "failed", "error-desc": "disk full"}, "", MonitorTrouble, "disk full"),
        ({"status": "completed"}, "stop", MonitorTrouble, ""),
        ({"status": "completed"}, "cont", StillStopped, ""),
    ],
    ids=["too slow", "failed", "stop hangs", "cont hangs"],
)
def test_failed_save_resumes_the_guest(
    descriptor: int, progress: dict[str, str], silent: str, kind: type[Exception], message: str
) -> None:
    def answer(command: str, commands: list[str]) -> dict[str, Any] | None:
        if command == silent:
            return None
        cancelled = {"status": "cancelled"} if "migrate_cancel" in commands else progress
        return cancelled if command == "query-migrate" else {}

    commands, trouble = _save(answer, descriptor)
    assert type(trouble) is kind
    assert message in str(trouble)
    assert ("migrate_cancel" in commands) is (progress["status"] == "active")
    assert commands[-1] == "cont"


def test_qemu_is_killed_before_channels_close() -> None:
    done = []

    def interrupted() -> None:
        done.append("monitor")
        raise KeyboardInterrupt

    qemu: Any = SimpleNamespace(kill=lambda: done.append("qemu"))
    agent: Any = SimpleNamespace(close=lambda: done.append("agent"))
    monitor: Any = SimpleNamespace(close=interrupted)
    with pytest.raises(KeyboardInterrupt):
        PowerCycle(qemu, monitor, agent).off()
    assert done == ["qemu", "agent", "monitor"]
