"""Cases whose kernel, agent or host goes wrong behind their model's back.

UEVT_DRILL_MODULE is the module of tests.drills.provoke, UEVT_DRILL_ONCE a directory in which what
is to go wrong only once leaves a file.
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
from tests.drills import provoke
from tests.drills.provoke import Channel, behind, insert

case = surface("drill")
#: What an answer may take here, in seconds of an unhurried machine.
IMPATIENT = 0.15
_KILL, _SIGSTOP, _GETPID = 62, 19, 39


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long: what hangs here hangs for ever."""
    monkeypatch.setattr(vm.machine, "_CALL_S", IMPATIENT)


def hazardous(ue: UserEvents) -> Channel:
    """The guest of a case that works, with the module in it."""
    assert ue.open_data().register(ue.name()).index == 0
    channel = behind(ue)
    insert(channel, Path(os.environ["UEVT_DRILL_MODULE"]))
    return channel


def first(name: str) -> bool:
    """Whether this is asked for the first time."""
    file = Path(os.environ["UEVT_DRILL_ONCE"]) / name
    if file.exists():
        return False
    file.touch()
    return True


@case
def test_before(ue: UserEvents) -> None:
    """What passes."""
    assert ue.open_data().register(ue.name()).index == 0


@case(isolation="fatal")
def test_warns(ue: UserEvents) -> None:
    """The kernel warns twice, each time."""
    assert provoke.provoke(hazardous(ue), "warn_twice") == 0


@case(isolation="fatal")
def test_oops(ue: UserEvents) -> None:
    """The kernel oopses and ends."""
    provoke.provoke(hazardous(ue), "null")


@case(isolation="fatal")
def test_oops_survived(ue: UserEvents) -> None:
    """The kernel oopses and goes on; the process that made it does not."""
    channel = hazardous(ue)
    assert provoke.write(channel, "/proc/sys/kernel/panic_on_oops", "0") == 0
    provoke.provoke(channel, "null")


@case(isolation="fatal")
def test_complains_elsewhere(ue: UserEvents) -> None:
    """All answers are right, and a worker of the kernel's warned meanwhile."""
    assert provoke.provoke(hazardous(ue), "warn_later") == 0
    time.sleep(0.8)


@case(isolation="fatal")
def test_memory(ue: UserEvents) -> None:
    """The guest has too little memory, once."""
    channel = hazardous(ue)
    if first("memory"):
        provoke.write(channel, "/proc/sysrq-trigger", "f")
        time.sleep(0.3)
        provoke.provoke(channel, "say", "still here")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_spins(ue: UserEvents) -> None:
    """The kernel spins, interrupts off: no watchdog notices."""
    channel = hazardous(ue)
    if first("spins"):
        provoke.provoke(channel, "spin_irqs_off")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_sleeps(ue: UserEvents) -> None:
    """A system call sleeps and nobody wakes it, once."""
    channel = hazardous(ue)
    if first("sleeps"):
        provoke.provoke(channel, "sleep")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_agent_stopped(ue: UserEvents) -> None:
    """A process of the agent's stops itself, once."""
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
        os.kill(provoke.qemu_below(os.getpid()), signal.SIGSTOP)
        provoke.provoke(channel, "say", "hello")


@case(isolation="fatal")
@pytest.mark.usefixtures("impatient")
def test_qemu_pauses(ue: UserEvents) -> None:
    """QEMU stops the machine, as it does when KVM breaks or an image cannot be written, once."""
    channel = hazardous(ue)
    if first("qemu_pauses"):
        provoke.pause_machine(channel)
        provoke.provoke(channel, "say", "hello")


@case
def test_after(ue: UserEvents) -> None:
    """Another guest works afterwards."""
    assert ue.open_data().register(ue.name("after")).index == 0
