"""A real guest as a machine: facts, marks, restart, and all ways to end."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from host.deadline import Deadline
from host.kernel_reports import ReportKind
from vm.errors import BootFailed, CallRefused, ChannelBroken, DiskFull, GuestCrashed, QemuDied
from vm.machine import Machine, MachineSpec

pytestmark = pytest.mark.kernel

PAUSE = 34
BOOT_SECONDS = 90.0

HOST = """
import signal, sys, time
from pathlib import Path
from host.deadline import Deadline
from vm.machine import Machine, MachineSpec
machine = Machine.boot(
    MachineSpec(Path(sys.argv[1])), directory=Path("guest"), deadline=Deadline(90, "boot")
)
# A shell that runs the tests in the background would have Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
Path("pid.new").write_text(str(machine.pid))
Path("pid.new").rename("pid")
with machine:
    time.sleep(60)
"""


def test_facts(machine: Machine) -> None:
    info = machine.info
    assert info["release"].startswith("6.12.")
    assert "CONFIG_TRACEPOINTS=y" in info["config"]
    assert info["tracefs"] == ["/sys/kernel/tracing"]
    assert (info["nproc"], info["pagesize"], info["tainted"]) == (1, 4096, 0)


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
    assert not machine.healthy()


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
    assert not machine.healthy()


def test_agent_that_gives_up_is_no_crash(machine: Machine) -> None:
    """The agent reports a malformed frame and powers the guest off."""
    assert machine._power is not None
    machine._power.agent._supervisor._socket.send(b"garbage")
    with pytest.raises(ChannelBroken, match="the host's frame magic"):
        machine.call("", [["ping"]])


def test_exit_of_init_is_no_crash(spec: MachineSpec, tmp_path: Path) -> None:
    broken = MachineSpec(kernel=spec.kernel, python=Path("/bin/true"))
    with pytest.raises(BootFailed, match="Attempted to kill init") as caught:
        Machine.boot(broken, directory=tmp_path, deadline=Deadline(BOOT_SECONDS, "boot"))
    assert caught.value.phase == "init"


def test_boot_timeout_leaves_no_qemu(spec: MachineSpec, tmp_path: Path) -> None:
    with pytest.raises(BootFailed, match=r"within 0\.3 s"):
        Machine.boot(spec, directory=tmp_path, deadline=Deadline(0.3, "agent"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["console.log", "qemu.log"]
    named = str(tmp_path).encode()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            assert named not in process.read_bytes()


def test_full_disk(spec: MachineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 1, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    with pytest.raises(DiskFull, match="no space left"):
        Machine.boot(spec, directory=tmp_path, deadline=Deadline(BOOT_SECONDS, "boot"))


def test_close_is_final(spec: MachineSpec, tmp_path: Path) -> None:
    machine = Machine.boot(spec, directory=tmp_path, deadline=Deadline(BOOT_SECONDS, "boot"))
    pid = machine.pid
    machine.close()
    machine.close()
    assert pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ChannelBroken, match="closed"):
        machine.call("", [["ping"]])


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_killed_parent_leaves_nothing(
    spec: MachineSpec, tmp_path: Path, end: signal.Signals
) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path / "tmp"),
    }  # fmt: skip
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(spec.kernel)],
        cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL,
    ) as host:  # fmt: skip
        deadline = Deadline(BOOT_SECONDS, "boot")
        while not (tmp_path / "pid").exists():
            deadline.pause()
        host.send_signal(end)
    pid = int((tmp_path / "pid").read_text())
    gone = Deadline(10, "end of QEMU")
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        gone.pause()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert {path.name for path in (tmp_path / "guest").iterdir()} == {"console.log", "qemu.log"}
