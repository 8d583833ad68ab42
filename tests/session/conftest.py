"""A machine that never boots."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vm.machine
from host.deadline import Deadline
from vm.errors import VmError
from vm.kernel_log.lines import Mark
from vm.qemu import root_archive as archives
from vm.qemu.accelerator import TCG
from vm.qemu.console import Console

LOGS = Path(__file__).parents[2] / "fixtures" / "console"


class Machine:
    """A machine that starts in a given way."""

    start = "booted"

    def __init__(self, console: Path) -> None:
        self.info: dict[str, Any] = {}
        self.trouble: VmError | None = None
        self.boots = self.ready_at = 0
        self.opened: list[object] = []
        self.asked: list[str] = []
        self.console = Console(console)
        self.spec = SimpleNamespace(append=(), accelerator=TCG)

    def wait_ready(self, deadline: Deadline) -> None:
        pass

    def deadline(self, seconds: float, what: str) -> Deadline:
        return Deadline(seconds, what)

    def call_deadline(self, actor: str) -> Deadline:
        return Deadline(1.0, actor)

    def call(self, actor: str, *words: Any, deadline: Deadline) -> list[dict[str, Any]]:
        self.asked.append(actor)
        return []

    def close(self) -> None:
        pass

    def mark(self, text: str) -> Mark:
        return Mark(text, self.console.position())

    def check(self, mark: Mark) -> None:
        pass

    def pristine(self, processors: int = 1, exports: object = ()) -> None:
        self.boots += 1
        self.console.append((LOGS / "warn_6.12.log").read_text())
        self.ready_at = self.console.position()
        if self.trouble is not None:
            raise self.trouble


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """The machine that guests launch."""
    made = Machine(tmp_path / "console.log")
    monkeypatch.setattr(vm.machine.Machine, "launch", lambda *words, **named: made)
    monkeypatch.setattr(archives, "root_archive", lambda python, cache: Path("root.cpio"))
    return made
