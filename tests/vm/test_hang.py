"""Diagnose hangs from QEMU and kernel output; test_postmortem_in_guests has real ones."""

from __future__ import annotations

import os
import signal
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import cast

import pytest

from host.deadline import Deadline
from host.temporary_directories import sweep
from tests.vm.captured import read
from vm.errors import Party
from vm.postmortem import hang
from vm.postmortem.hang import diagnose
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime
from vm.qemu.qmp import MonitorTrouble


def registers(address: int, level: int, halted: int = 0) -> str:
    """Output of `info registers`."""
    return (
        "CPU#0\nRAX=ffffffffa000002c RBX=00000000000000d0\n"
        f"RIP={address:016x} RFL=00000046 [---Z-P-] CPL={level} II=0 A20=1 SMM=0 HLT={halted}\n"
    )


KERNEL = registers(0xFFFFFFFFA000002F, 0)
IDLE = registers(0xFFFFFFFF814B10FD, 0, 1)
# KVM does not report a halted processor.
RESTING = registers(0xFFFFFFFF814B10FD, 0)
PROGRAM = registers(0x7F5AF6B56829, 3)


class Guest:
    """A fake QEMU and monitor; prints a captured log on NMI or BREAK."""

    def __init__(self, console: Path, dumps: list[str], log: str = "", status: str = "running"):
        self._console, self._dumps, self._status = console, dumps, status
        self._log = read(log) if log else ""
        self.monitor = self.qemu = self
        self.actions = ""
        # CPU time per second of the processor's thread.
        self.busy, self.waits = 1.0, 0.0
        self.now = 0.0
        self.ended = False

    def stopped(self) -> bool:
        return False

    def alive(self) -> bool:
        return not self.ended

    def cpu_time(self) -> CpuTime:
        self.now += 1.0
        return CpuTime(self.now, {"1": (self.busy * self.now, self.waits * self.now)})

    def status(self, deadline: Deadline) -> str:
        if self._status == "silent":
            raise MonitorTrouble(f"no {deadline.what}")
        return self._status

    def registers(self, deadline: Deadline) -> str:
        return self._dumps.pop(0) if len(self._dumps) > 1 else self._dumps[0]

    def _print_log(self, action: str) -> None:
        self.actions += action
        with self._console.open("a") as file:
            file.write(self._log)

    def nmi(self, deadline: Deadline) -> None:
        self._print_log("nmi")

    def press_break(self, line: Path, console: Path, deadline: Deadline) -> None:
        self._print_log("break")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake answers at once, so shorten all limits."""
    monkeypatch.setattr(hang, "_INTERVAL_S", 0.0)
    monkeypatch.setattr(hang, "_ANSWER_S", 0.1)
    monkeypatch.setattr(hang, "_OUTPUT_S", 0.1)


def diagnosed(guest: Guest) -> hang.Diagnosis:
    console = Console(guest._console)
    return diagnose(cast(PowerCycle, guest), console, CpuTime(0.0, {}), 1.0)


def test_spinning_processor(tmp_path: Path) -> None:
    guest = Guest(tmp_path / "log", [KERNEL], "hang_nmi")
    found = diagnosed(guest)
    assert (guest.actions, found.party) == ("nmi", Party.KERNEL)
    assert found.frames[:3] == ("hazard_spin_irqs_off", "hazard_write", "proc_reg_write")
    assert found.where == (
        "a processor spins in the kernel, "
        "in hazard_spin_irqs_off < hazard_write < proc_reg_write (python3.11)"
    )
    ran, dump, *_ = found.seen.splitlines()
    assert ran == "QEMU ran for 4.0 s and waited for 0.0 s"
    assert dump == "registers: kernel 0xffffffffa000002f"


@pytest.mark.parametrize(
    ("dumps", "log", "actions", "party", "where"),
    [
        # The hang is in the interrupted function, not in the interrupt handler.
        ([KERNEL], "hang_nmi_in_interrupt", "nmi", Party.KERNEL, "in hazard_spin <"),
        # The kernel ignores the NMI.
        (
            [KERNEL],
            "",
            "nmi",
            Party.KERNEL,
            "a processor spins in the kernel, in 0xffffffffa000002f",
        ),
        ([IDLE], "hang_tasks_waiting", "break", Party.AGENT, "every program of the guest waits"),
        # Without scheduler statistics the stack shows the idle loop.
        ([RESTING], "hang_nmi_idle", "nmi", Party.AGENT, "all processors are idle"),
        # A program computes.
        ([PROGRAM], "", "", Party.AGENT, "0x7f5af6b56829"),
        ([KERNEL, PROGRAM, KERNEL, PROGRAM], "", "", Party.AGENT, "0x7f5af6b56829"),
    ],
)
def test_cause_of_a_hang(
    tmp_path: Path, dumps: list[str], log: str, actions: str, party: Party, where: str
) -> None:
    guest = Guest(tmp_path / "log", list(dumps), log)
    found = diagnosed(guest)
    assert (guest.actions, found.party) == (actions, party)
    assert where in found.where
    assert bool(found.frames) is (log == "hang_nmi_in_interrupt")


@pytest.mark.parametrize(
    ("dumps", "busy", "waits"),
    # A processor is idle if it gets there once the host lets it run.
    [([IDLE], 1.0, 0.0), ([RESTING], 0.01, 0.0), ([*[KERNEL] * 9, IDLE], 0.001, 0.4)],
    ids=["idle", "resting", "busy host"],
)
def test_sleeping_system_call(tmp_path: Path, dumps: list[str], busy: float, waits: float) -> None:
    guest = Guest(tmp_path / "log", list(dumps), "hang_tasks")
    guest.busy, guest.waits = busy, waits
    found = diagnosed(guest)
    assert (guest.actions, found.party) == ("break", Party.KERNEL)
    assert found.where == (
        "python3.11 sleeps in the kernel (state S), in hazard_write < proc_reg_write < vfs_write"
    )
    assert "task:kthreadd" not in found.seen


def test_stale_addresses_in_the_scheduler_are_no_cause(tmp_path: Path) -> None:
    found = diagnosed(Guest(tmp_path / "log", [IDLE], "hang_tasks_stale"))
    assert "__slab_alloc_node" in found.seen
    assert found.frames[:2] == ("hazard_write", "proc_reg_write")


def test_killed_diagnosis_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    guest = Guest(tmp_path / "log", [IDLE])
    guest.press_break = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    diagnosing = get_context("fork").Process(target=diagnosed, args=(guest,))
    diagnosing.start()
    diagnosing.join(30)
    assert diagnosing.exitcode == -signal.SIGKILL
    assert any(path.is_dir() for path in tmp_path.iterdir())
    sweep(tmp_path)
    assert not any(path.is_dir() for path in tmp_path.iterdir())


def test_no_nmi_without_a_console(tmp_path: Path) -> None:
    guest = cast(PowerCycle, Guest(tmp_path / "log", [KERNEL]))
    found = diagnose(guest, None, CpuTime(0.0, {}), 1.0)
    assert found.where == "a processor spins"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("internal-error", "QEMU has stopped the machine: internal-error"),
        ("io-error", "QEMU has stopped the machine: io-error"),
        ("silent", "QEMU is stuck: no answer of its monitor"),
    ],
)
def test_qemu_has_stopped_the_machine(tmp_path: Path, status: str, message: str) -> None:
    found = diagnosed(Guest(tmp_path / "log", [KERNEL], status=status))
    assert (found.party, found.where) == (Party.HOST, message)


def test_qemu_ends_during_the_diagnosis(tmp_path: Path) -> None:
    guest = Guest(tmp_path / "log", [KERNEL], status="silent")
    guest.ended = True
    with pytest.raises(MonitorTrouble):
        diagnosed(guest)
