"""Explain failed calls and boots from captured consoles."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from host.kernel_reports import ReportKind
from tests.vm.captured import read
from vm import errors
from vm.agent.channel import ChannelEnded
from vm.errors import Party, VmError
from vm.postmortem.explain import PostMortem
from vm.postmortem.hang import starved
from vm.qemu.command_line import MachineSpec
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime

ENDED, DIED = ChannelEnded("the channel ended"), errors.ActorDied("c1", signal.SIGKILL)
NEVER = CpuTime(0.0, {})


class Qemu:
    """A QEMU that has ended or is stopped."""

    def __init__(self, returncode: int | None = None, output: str = "") -> None:
        self.returncode, self._output = returncode, output

    def wait(self, seconds: float) -> int | None:
        return self.returncode

    def output(self) -> str:
        return self._output

    def alive(self) -> bool:
        return self.returncode is None

    def stopped(self) -> bool:
        return True


def post_mortem(directory: Path, text: str, qemu: Qemu, *, root: bool = True) -> PostMortem:
    console = Console(directory / "console.log")
    console.path.write_text(text)
    spec = MachineSpec(Path("bzImage"), initramfs=Path("initramfs") if root else None)
    power = cast(PowerCycle, SimpleNamespace(qemu=qemu))
    return PostMortem(spec, console, power, NEVER, booted_at=0, marked_at=0, slowness=1.0)


@pytest.mark.parametrize(
    ("log", "qemu", "trouble", "kind", "message"),
    [
        ("oops_null", Qemu(0), ENDED, errors.GuestCrashed, "NULL pointer"),
        ("oops_survived", Qemu(), DIED, errors.GuestCrashed, "NULL pointer"),
        ("oops_storm", Qemu(), errors.NoAnswer("x"), errors.GuestCrashed, "general protection"),
        ("panic_in_call", Qemu(0), ENDED, errors.GuestCrashed, "asked to"),
        ("panic_in_call", Qemu(-9), ENDED, errors.GuestCrashed, "asked to"),
        ("silent_hang", Qemu(0), ENDED, errors.GuestCrashed, "without any console output"),
        ("silent_hang", Qemu(-9, "killed"), ENDED, errors.QemuDied, "SIGKILL"),
        ("silent_hang", Qemu(1, "no memory"), ENDED, errors.QemuDied, "no memory"),
        ("silent_hang", Qemu(), errors.NoAnswer("x"), errors.QemuStuck, "is stopped"),
        ("silent_hang", Qemu(), DIED, errors.ActorDied, "SIGKILL"),
        ("warn_6.12", Qemu(), DIED, errors.ActorDied, "SIGKILL"),
        ("oom_kill", Qemu(), DIED, errors.GuestOutOfMemory, "oom-killer"),
        ("init_exits", Qemu(0), ENDED, errors.ChannelBroken, "Attempted to kill init"),
    ],
)
def test_cause_of_a_failed_call(
    tmp_path: Path, log: str, qemu: Qemu, trouble: Any, kind: type[VmError], message: str
) -> None:
    found = post_mortem(tmp_path, read(log), qemu).explain_call(trouble, 0)
    assert type(found) is kind
    assert message in str(found)
    assert read(log).splitlines()[0] in found.console


@pytest.mark.parametrize(
    ("line", "kind"),
    [("reboot: Power down", errors.ChannelBroken), ("Comm: reboot: x", errors.GuestCrashed)],
)
def test_regular_power_off_is_no_crash(tmp_path: Path, line: str, kind: type[VmError]) -> None:
    examined = post_mortem(tmp_path, f"[    9.000000] {line}\n", Qemu(0))
    assert type(examined.explain_call(ENDED, 0)) is kind


def test_output_between_calls_counts(tmp_path: Path) -> None:
    found = post_mortem(tmp_path, read("oops_null"), Qemu(0)).explain_call(ENDED, 10_000)
    assert type(found) is errors.GuestCrashed
    assert [each.kind for each in found.findings] == [ReportKind.OOPS]


def test_full_disk_explains_missing_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 1, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    with pytest.raises(errors.DiskFull):
        post_mortem(tmp_path, "", Qemu(0)).explain_call(ENDED, 0)


@pytest.mark.parametrize(
    ("log", "qemu", "root", "kind", "party"),
    [
        ("oops_null", Qemu(0), True, errors.BootFailed, Party.KERNEL),
        ("panic_in_call", Qemu(0), True, errors.BootFailed, Party.KERNEL),
        ("init_exits", Qemu(0), True, errors.BootFailed, Party.AGENT),
        ("panic_no_root", Qemu(0), True, errors.BootFailed, Party.AGENT),
        ("panic_no_root", Qemu(0), False, errors.NoRoot, Party.HOST),
        ("boot_clean", Qemu(0), True, errors.BootFailed, Party.KERNEL),
        ("silent_hang", Qemu(0), True, errors.BootFailed, Party.HOST),
        ("silent_hang", Qemu(-6), True, errors.QemuDied, None),
    ],
)
def test_cause_of_a_failed_boot(
    tmp_path: Path, log: str, qemu: Qemu, root: bool, kind: type[VmError], party: Party | None
) -> None:
    found = post_mortem(tmp_path, read(log), qemu, root=root).explain_boot(ENDED)
    assert type(found) is kind
    assert getattr(found, "party", None) is party


@pytest.mark.parametrize(
    ("threads", "kept"),
    [
        ({"1": (0.0, 0.0), "2": (0.01, 8.0)}, True),
        # It ran enough to show its state, and now it is idle.
        ({"1": (0.0, 0.0), "2": (2.0, 8.0)}, False),
        ({"1": (0.0, 0.0), "2": (0.01, 0.01)}, False),
        # The waiting of the main loop is irrelevant.
        ({"1": (0.01, 6.0), "2": (3.0, 7.0)}, False),
        ({}, False),
    ],
)
def test_starved_qemu(threads: dict[str, tuple[float, float]], kept: bool) -> None:
    found = starved(NEVER, CpuTime(10.0, threads))
    assert bool(found) is kept


class Booting(Qemu):
    """A running QEMU with some CPU time in 100 seconds."""

    def __init__(self, ran: float, waited: float) -> None:
        super().__init__()
        self._got = ran, waited

    def stopped(self) -> bool:
        return False

    def cpu_time(self) -> CpuTime:
        return CpuTime(100.0, {"1": self._got})


@pytest.mark.parametrize(
    ("qemu", "silence", "message"),
    [
        (Booting(20, 75), 60, "the host let QEMU run for 20.0 of the last 100.0 s"),
        (Booting(95, 3), 0, "the kernel was still booting"),
    ],
)
def test_slow_boot_is_no_hang(tmp_path: Path, qemu: Qemu, silence: float, message: str) -> None:
    """A booting kernel is busy, which alone is no hang."""
    examined = post_mortem(tmp_path, read("boot_clean"), qemu)
    past = time.time() - silence
    os.utime(examined.console.path, (past, past))
    found = examined.explain_boot(errors.NoAnswer("no agent within 60 s"))
    assert isinstance(found, errors.BootFailed)
    assert found.party is Party.HOST
    assert message in str(found)
