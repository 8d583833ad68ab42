"""A real guest as a machine: facts, marks, restart, and all ways to end."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path

import pytest

from host.deadline import Deadline
from host.kernel_reports import ReportKind
from tests.processes import naming
from tests.vm.conftest import boot, healthy
from vm.errors import BootFailed, CallRefused, ChannelBroken, GuestCrashed, QemuDied
from vm.machine import Machine, MachineSpec

pytestmark = pytest.mark.kernel

PAUSE = 34


def test_facts(machine: Machine) -> None:
    info = machine.info
    assert info["release"].startswith("6.12.")
    assert "CONFIG_TRACEPOINTS=y" in info["config"]
    assert info["nproc"] == 1
    assert len(info["boot_id"]) == 36


def test_marks_delimit_the_console_of_a_case(machine: Machine) -> None:
    machine.mark("one")
    mark = machine.mark("two\nlines")
    machine.check(mark)
    since = mark.position
    for number in range(30):
        machine.mark(f"many {number}")
    text = machine.console.text(since)
    assert "one" not in text
    assert "two lines" in text
    assert text.count("many") == 30
    assert machine.console.findings(since) == ()


def test_pristine_changes_the_number_of_processors(machine: Machine) -> None:
    machine.pristine(2)
    assert machine.info["nproc"] == 2
    machine.pristine()
    assert machine.info["nproc"] == 2
    machine.pristine(1)
    assert machine.info["nproc"] == 1


def test_pristine_keeps_nothing(machine: Machine) -> None:
    machine.call("a", [["spill", "/tmp/trace", "00", os.O_WRONLY | os.O_CREAT]])
    before = machine.pid
    machine.pristine()
    assert machine.pid != before
    with pytest.raises(CallRefused):
        machine.call("a", [["slurp", "/tmp/trace", 1]])
    machine.call("", [["spawn", "a"]])
    assert machine.call("a", [["slurp", "/tmp/trace", 1]])[0]["errno"] == errno.ENOENT


def test_panic_in_a_call_is_a_crash(machine: Machine) -> None:
    since = machine.mark("panic.sysrq").position
    with pytest.raises(GuestCrashed, match="sysrq triggered crash") as caught:
        machine.call("a", [["spill", "/proc/sysrq-trigger", b"c".hex(), os.O_WRONLY]])
    assert "Kernel panic - not syncing" in caught.value.console
    assert ReportKind.PANIC in [found.kind for found in machine.console.findings(since)]
    assert not healthy(machine)


def test_silent_reset_is_a_crash(machine: Machine) -> None:
    with pytest.raises(GuestCrashed, match="reset without any console output"):
        machine.call("a", [["spill", "/proc/sysrq-trigger", b"b".hex(), os.O_WRONLY]])


def test_qemu_is_killed_in_a_call(machine: Machine) -> None:
    assert machine.pid
    killer = threading.Timer(0.3, os.kill, (machine.pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(QemuDied, match="SIGKILL") as caught:
        machine.call("a", [["sys", PAUSE, [], None]])
    killer.join()
    assert caught.value.returncode == -signal.SIGKILL
    assert not healthy(machine)


def test_boot_timeout_leaves_no_qemu(spec: MachineSpec, tmp_path: Path) -> None:
    with pytest.raises(BootFailed, match=r"within 0\.3 s"):
        Machine.boot(spec, directory=tmp_path, deadline=Deadline(0.3, "agent"))
    # On a busy host QEMU has not created console.log yet.
    assert {path.name for path in tmp_path.iterdir()} - {"console.log"} == {"qemu.log"}
    assert naming(str(tmp_path)) == []


def test_close_is_final(spec: MachineSpec, tmp_path: Path) -> None:
    machine = boot(spec, tmp_path)
    pid = machine.pid
    machine.close()
    machine.close()
    assert pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ChannelBroken, match="closed"):
        machine.call("", [["ping"]])
