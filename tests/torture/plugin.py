"""Pytest plugin that injects faults around calls of the session's worker processes.

UEVT_TORTURE holds the plan as JSON.  The plan's diary has a line of JSON for each case that
begins and each fault that is injected.  A fault waits for a case that no earlier fault can hit,
so that two faults never hit a case and its rerun.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
from msgspec import Struct
from msgspec.structs import asdict

import vm.machine
from conformance.runner import guest_setup
from conformance.session.pool.worker_process import ReportForwarder
from conformance.session.selection import case_and_id
from host.deadline import Deadline
from tests.drills import provoke
from tests.faults import BY_NAME
from tests.torture.frames import Meddler
from vm.agent import encoding
from vm.errors import VmError
from vm.machine import Machine

VARIABLE = "UEVT_TORTURE"
_NANOSLEEP, _KILL = 35, 62
_CALL_S = 1.5
# How much later a guest may start a fault when its host is busy.
_LATE_S = 0.1
# By then another worker has begun the case whose worker was killed.
_REPLACED_S = 1.0


class Strike(Struct, frozen=True):
    """When to inject a fault: in a worker's `case`-th case, `ms` after its `call`-th call.

    It waits for a later case if this one has fewer calls, or is too close to another fault.
    """

    fault: str
    worker: str
    case: int
    call: int
    ms: int
    seed: int


class Plan(Struct, frozen=True):
    """The faults of one run."""

    strikes: tuple[Strike, ...]
    diary: Path
    module: Path

    def to_environment(self) -> dict[str, str]:
        """The environment of a session to disturb."""
        strikes = [asdict(strike) for strike in self.strikes]
        plan = {"strikes": strikes, "diary": str(self.diary), "module": str(self.module)}
        return {"PYTEST_PLUGINS": __name__, VARIABLE: json.dumps(plan)}

    @classmethod
    def from_environment(cls) -> Self:
        """The plan in this process's environment."""
        plan = json.loads(os.environ[VARIABLE])
        strikes = tuple(Strike(**strike) for strike in plan["strikes"])
        return cls(strikes, Path(plan["diary"]), Path(plan["module"]))


class Disturber:
    """Counts cases and calls of one worker, and injects faults when they are due."""

    def __init__(self, plan: Plan, worker: str) -> None:
        self._plan = plan
        self._worker = worker
        self._pending = [strike for strike in plan.strikes if strike.worker == worker]
        self._cases = self._calls = self._attempts = 0
        self._case = ""
        self._inserting = False
        self._call = Machine.call
        # A disturbed run mostly waits for sides that do not answer.
        vm.machine._CALL_S = _CALL_S
        Machine.wait_ready = self._with_module()  # type: ignore[method-assign,assignment]
        Machine.call = self._counted()  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record that a case begins."""
        _, self._case = case_and_id(item)
        self._cases += 1
        self._calls = self._attempts = 0
        self._note("begins")
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Count the attempts of the case."""
        self._attempts += 1

    def _with_module(self) -> Callable[[Machine, Deadline], None]:
        wait_ready = Machine.wait_ready

        def ready(machine: Machine, deadline: Deadline) -> None:
            wait_ready(machine, deadline)
            if any(BY_NAME[strike.fault].hazard for strike in self._pending):
                # Before the runner records guest-wide state, which includes modules.
                self._inserting = True
                try:
                    provoke.insert(machine, self._plan.module)
                    # The answers to the opening requests are stale now.
                    del machine.opened[len(guest_setup.OPENING) :]
                finally:
                    self._inserting = False

        return ready

    def _counted(self) -> Callable[..., list[dict[str, Any]]]:
        call = Machine.call

        def counted(machine: Machine, *words: Any, **named: Any) -> list[dict[str, Any]]:
            self._calls += 1
            due = [
                strike
                for strike in self._pending
                if (strike.case, strike.call) <= (self._cases, self._calls)
            ]
            if due and self._attempts == 1 and not self._inserting and self._announce(due[0]):
                self._pending.remove(due[0])
                self._strike(machine, due[0])
            return call(machine, *words, **named)

        return counted

    def _announce(self, strike: Strike) -> bool:
        """Record a fault, unless another may hit the same case."""
        with self._plan.diary.open("a+") as diary:
            fcntl.flock(diary, fcntl.LOCK_EX)
            diary.seek(0)
            # The last line may be incomplete.
            lines = [json.loads(line) for line in diary if line.endswith("\n")]
            if not alone(lines, self._worker, self._case):
                return False
            more = _REPLACED_S if strike.fault == "worker-killed" else _LATE_S
            latest = time.monotonic() + strike.ms / 1000 + more
            self._note("strikes", fault=strike.fault, latest=latest)
            return True

    def _strike(self, machine: Machine, strike: Strike) -> None:
        qemu = machine.pid or 0
        match strike.fault:
            case "qemu-killed":
                _later(strike, lambda: os.kill(qemu, signal.SIGKILL))
            case "qemu-stopped":
                _later(strike, lambda: os.kill(qemu, signal.SIGSTOP))
            case "qemu-paused":
                _later(strike, lambda: _pause(qemu))
            case "worker-killed":
                _later(strike, lambda: os.kill(os.getpid(), signal.SIGKILL))
            case "controller-killed":
                _later(strike, lambda: os.kill(os.getppid(), signal.SIGKILL))
            case "run-killed":
                _later(strike, lambda: os.killpg(os.getpgrp(), signal.SIGKILL))
            case "agent-killed":
                _in_guest(machine, strike, ["sys", _KILL, [-1, int(signal.SIGKILL)], None])
            case "panic":
                _in_guest(machine, strike, _spill("/proc/sysrq-trigger", "c"))
            case "oops" | "warning" | "hang":
                _in_guest(
                    machine, strike, _spill("/proc/uevt_hazard", BY_NAME[strike.fault].hazard)
                )
            case _:
                Meddler(strike.fault.removeprefix("frame-"), strike.seed).meddle(machine)

    def _note(self, what: str, **more: Any) -> None:
        line = {"what": what, "worker": self._worker, "case": self._case, "at": time.monotonic()}
        line |= more
        with self._plan.diary.open("a") as diary:
            diary.write(json.dumps(line) + "\n")


def alone(lines: Sequence[Mapping[str, Any]], worker: str, case: str) -> bool:
    """Whether no fault in a diary can hit a case that has begun in a worker.

    A fault may hit its own case, the next of its worker, and those that begin before its latest
    moment; a case whose worker it killed begins again in another.
    """
    began = [line["at"] for line in lines if (line["what"], line["case"]) == ("begins", case)]
    strikes = [line for line in lines if line["what"] == "strikes"]
    if len(began) != 1 or any(strike["latest"] >= began[0] for strike in strikes):
        return False
    here = [line["what"] for line in reversed(lines) if line["worker"] == worker]
    return "strikes" not in here[:2]


def _later(strike: Strike, act: Callable[[], None]) -> None:
    def late() -> None:
        # QEMU may be gone already.
        with suppress(ProcessLookupError):
            act()

    threading.Timer(strike.ms / 1000, late).start()


def _pause(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.0)
    os.kill(pid, signal.SIGCONT)


def _in_guest(machine: Machine, strike: Strike, call: Sequence[Any]) -> None:
    """Let a process of the guest wait and then perform a call, without waiting for the reply."""
    assert machine._power is not None
    agent = machine._power.agent
    limit = machine.deadline(_CALL_S, "provoking process")
    try:
        if agent.roster.get(provoke.ACTOR) is None:
            agent.call("", [["spawn", provoke.ACTOR]], (), limit)
        port = agent.roster.find(provoke.ACTOR).port
        pause = (0).to_bytes(8, "little") + (strike.ms * 1_000_000).to_bytes(8, "little")
        agent._number += 1
        calls = [["sys", _NANOSLEEP, [{"in": pause.hex()}, 0], None], list(call)]
        agent._channels[port].send(encoding.request(agent._number, calls, []), limit)
    except VmError:
        # An earlier fault killed the guest.
        return


def _spill(path: str, text: str) -> list[Any]:
    return ["spill", path, text.encode().hex(), os.O_WRONLY]


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Disturb this process if it is a worker."""
    if isinstance(plugin, ReportForwarder):
        manager.register(Disturber(Plan.from_environment(), plugin.name), "uevt-torture")
