"""Disturbs the pytest session that it is loaded into: one fault, at one call of one process.

UEVT_TORTURE holds the plan as JSON.  What happened is told in the plan's diary, a line of JSON
each: when a case begins, when the fault is let loose, how many calls a process has made.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.plugin.running import _named
from tests.drills import provoke
from tests.torture.frames import Meddler
from vm.deadline import Deadline
from vm.errors import VmError
from vm.machine import Machine

VARIABLE = "UEVT_TORTURE"
_NANOSLEEP, _KILL = 35, 62


@dataclass(frozen=True, slots=True)
class Plan:
    """One fault: in the process `worker`, around its `call`-th call and `ms` after it."""

    fault: str
    worker: str
    call: int
    ms: int
    seed: int
    diary: str
    module: str = ""

    def to_environment(self) -> str:
        """For the variable."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})


class Disturber:
    """Counts the calls of one process and disturbs when it is time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._calls = 0
        self._case = ""
        self._done = False
        self._meddler = Meddler(plan.fault.removeprefix("frame-"), plan.seed)
        self._wait_ready, self._call = Machine.wait_ready, Machine.call
        Machine.wait_ready = self._ready()  # type: ignore[method-assign,assignment]
        Machine.call = self._counted()  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write down which case begins."""
        _, self._case = _named(item)
        self._note("begins")
        return (yield)

    def pytest_unconfigure(self) -> None:
        """Write down how many calls there were to choose from."""
        self._note("calls", calls=self._calls)

    def _ready(self) -> Callable[[Machine, Deadline], None]:
        wait_ready = self._wait_ready

        def ready(machine: Machine, deadline: Deadline) -> None:
            wait_ready(machine, deadline)
            if self._plan.module and not self._done:
                # Before the runner looks round: it is there from the beginning.
                provoke.insert(machine, Path(self._plan.module))

        return ready

    def _counted(self) -> Callable[..., list[dict[str, Any]]]:
        call = self._call

        def counted(machine: Machine, *words: Any, **named: Any) -> list[dict[str, Any]]:
            self._calls += 1
            if self._calls == self._plan.call and not self._done:
                self._done = True
                self._note("disturbed")
                self._disturb(machine)
            return call(machine, *words, **named)

        return counted

    def _disturb(self, machine: Machine) -> None:
        pid = machine.pid or 0
        match self._plan.fault:
            case "qemu-killed":
                self._later(lambda: os.kill(pid, signal.SIGKILL))
            case "qemu-stopped":
                self._later(lambda: os.kill(pid, signal.SIGSTOP))
            case "qemu-paused":
                self._later(lambda: _paused(pid))
            case "worker-killed":
                self._later(lambda: os.kill(os.getpid(), signal.SIGKILL))
            case "controller-killed":
                self._later(lambda: os.kill(os.getppid(), signal.SIGKILL))
            case "agent-killed":
                self._in_guest(machine, ["sys", _KILL, [-1, int(signal.SIGKILL)], None])
            case "panic":
                self._in_guest(machine, _spill("/proc/sysrq-trigger", "c"))
            case "oops" | "warning" | "hang":
                word = {"oops": "null", "warning": "warn", "hang": "spin_irqs_off"}
                self._in_guest(machine, _spill("/proc/uevt_hazard", word[self._plan.fault]))
            case "frame-flipped" | "frame-dropped" | "frame-doubled" | "frame-delayed":
                self._meddler.meddle(machine)

    def _later(self, act: Callable[[], None]) -> None:
        threading.Timer(self._plan.ms / 1000, act).start()

    def _in_guest(self, machine: Machine, call: Sequence[Any]) -> None:
        """Have a process of the guest wait and then do it; nobody waits for its answer."""
        assert machine._power is not None
        agent = machine._power.agent
        try:
            if not self._plan.module:
                agent.call("", [["spawn", provoke.ACTOR]], (), machine.deadline(4.0, "hazard"))
        except VmError:
            return
        actor = agent._actors[provoke.ACTOR]
        pause = (0).to_bytes(8, "little") + (self._plan.ms * 1_000_000).to_bytes(8, "little")
        agent._number += 1
        calls = [["sys", _NANOSLEEP, [{"in": pause.hex()}, 0], None], list(call)]
        message = {"id": agent._number, "calls": calls, "watch": []}
        agent._channels[actor.port].send(message, machine.deadline(4.0, "hazard"))

    def _note(self, what: str, **more: Any) -> None:
        line = {"what": what, "worker": self._plan.worker, "case": self._case, **more}
        if what != "disturbed":
            line["worker"] = os.environ.get("PYTEST_XDIST_WORKER", "")
        with Path(self._plan.diary).open("a") as diary:
            diary.write(json.dumps(line) + "\n")


def _spill(path: str, text: str) -> list[Any]:
    return ["spill", path, text.encode().hex(), os.O_WRONLY]


def _paused(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.0)
    os.kill(pid, signal.SIGCONT)


def pytest_configure(config: pytest.Config) -> None:
    """Disturb the process of the plan; note what all others do."""
    said = os.environ.get(VARIABLE)
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    if not said or not worker:
        return
    plan = Plan(**json.loads(said))
    if plan.worker != worker:
        plan = Plan(**{**json.loads(said), "call": 0, "module": ""})
    config.pluginmanager.register(Disturber(plan), "uevt-torture")
