"""Cases in which kernel, agent or host fail without an operation of the model.

UEVT_DRILL_MODULE is the module of tests.drills.provoke; in the directory UEVT_DRILL_ONCE each
failure that happens once leaves a file.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import vm.machine
from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from conformance.ops import WriteFile
from tests.drills import provoke
from tests.drills.provoke import Channel, behind, insert
from tests.processes import children

case = surface("drill", level="contract")
#: Time limit of an answer, in seconds of an idle machine.
IMPATIENT = 0.15
_KILL, _SIGSTOP, _GETPID = 62, 19, 39


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time limit of calls: a hazard that hangs never returns."""
    monkeypatch.setattr(vm.machine, "_CALL_S", IMPATIENT)


def hazardous(ue: UserEvents) -> Channel:
    """The guest of a case, with the module loaded."""
    assert ue.open_data().register(ue.name()).index == 0
    channel = behind(ue)
    insert(channel, Path(os.environ["UEVT_DRILL_MODULE"]))
    return channel


def first(name: str) -> bool:
    """Whether this is the first call with a name."""
    file = Path(os.environ["UEVT_DRILL_ONCE"]) / name
    if file.exists():
        return False
    file.touch()
    return True


@case
def test_before(ue: UserEvents) -> None:
    """Passes."""
    assert ue.open_data().register(ue.name()).index == 0


@case(isolation="fatal")
def test_panic(ue: UserEvents) -> None:
    """The guest panics, without the module."""
    assert ue.tracefs.write("/proc/sysrq-trigger", "c").value == 1


@case
def test_reports(ue: UserEvents) -> None:
    """All answers are right, and the console has a report."""
    assert ue.tracefs.status() == ""
    report = b"BUG: KASAN: use-after-free in drill+0x1/0x2\n"
    # Unseen by the model, which has no such file.
    executor = ue.lockstep._executor
    (written,) = executor.execute([WriteFile("root", "/dev/kmsg", report, os.O_WRONLY)], ())
    assert written.value == len(report)


@case
def test_qemu_killed(ue: UserEvents) -> None:
    """QEMU is killed, once."""
    data = ue.open_data()
    if first("qemu_killed"):
        os.kill(children(os.getpid(), "qemu")[0], signal.SIGKILL)
    assert data.register(ue.name()).index == 0


@case(isolation="fatal")
def test_warns(ue: UserEvents) -> None:
    """The kernel warns twice in every attempt."""
    assert provoke.provoke(hazardous(ue), "warn_twice") == 0


@case(isolation="fatal")
def test_oops(ue: UserEvents) -> None:
    """The kernel oopses and ends."""
    provoke.provoke(hazardous(ue), "null")


@case(isolation="fatal")
def test_oops_survived(ue: UserEvents) -> None:
    """The kernel survives an oops that kills the process."""
    channel = hazardous(ue)
    assert provoke.write(channel, "/proc/sys/kernel/panic_on_oops", "0") == 0
    provoke.provoke(channel, "null")


@case(isolation="fatal")
def test_complains_elsewhere(ue: UserEvents) -> None:
    """All answers are right while a kernel worker warns."""
    assert provoke.provoke(hazardous(ue), "warn_later") == 0
    time.sleep(0.8)


@case(isolation="fatal")
def test_memory(ue: UserEvents) -> None:
    """The guest runs out of memory once."""
    channel = hazardous(ue)
    if first("memory"):
        provoke.write(channel, "/proc/sysrq-trigger", "f")
        time.sleep(0.3)
        provoke.provoke(channel, "say", "still here")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_spins(ue: UserEvents) -> None:
    """The kernel spins with interrupts off, unnoticed by a watchdog."""
    channel = hazardous(ue)
    if first("spins"):
        provoke.provoke(channel, "spin_irqs_off")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_sleeps(ue: UserEvents) -> None:
    """A system call sleeps forever, once."""
    channel = hazardous(ue)
    if first("sleeps"):
        provoke.provoke(channel, "sleep")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_agent_stopped(ue: UserEvents) -> None:
    """A process of the agent stops, once."""
    channel = hazardous(ue)
    if first("agent_stopped"):
        (pid,) = channel.call(provoke.ACTOR, [["sys", _GETPID, [], None]])
        channel.call(provoke.ACTOR, [["sys", _KILL, [pid["value"], _SIGSTOP], None]])


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_qemu_stopped(ue: UserEvents) -> None:
    """QEMU is stopped by a signal, once."""
    channel = hazardous(ue)
    if first("qemu_stopped"):
        os.kill(children(os.getpid(), "qemu")[0], signal.SIGSTOP)
        provoke.provoke(channel, "say", "hello")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_qemu_pauses(ue: UserEvents) -> None:
    """QEMU pauses the machine once, as after an error of KVM or of a disk."""
    channel = hazardous(ue)
    if first("qemu_pauses"):
        provoke.pause_machine(channel)
        provoke.provoke(channel, "say", "hello")


@case
def test_after(ue: UserEvents) -> None:
    """Another guest works afterwards."""
    assert ue.open_data().register(ue.name("after")).index == 0
