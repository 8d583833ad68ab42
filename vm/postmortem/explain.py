"""Explain a failed call or boot from QEMU's state, the console and the host."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from host.arch import CONSOLE
from host.kernel_reports import CRASHES, ReportKind
from vm.agent.channel import ChannelEnded
from vm.errors import (
    AgentStuck,
    BootFailed,
    ChannelBroken,
    DiskFull,
    GuestCrashed,
    GuestOutOfMemory,
    GuestTrouble,
    NoAnswer,
    NoRoot,
    Party,
    QemuDied,
    QemuStuck,
    VmError,
)
from vm.kernel_log.reports import Finding, Phase
from vm.postmortem.hang import Diagnosis, diagnose, starved
from vm.qemu.command_line import MachineSpec
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime
from vm.qemu.qmp import MonitorTrouble

#: Seconds to wait for QEMU to end after the channel has ended.
_GRACE_S = 2.0
#: A boot was starved by the host if it ran for less than the first share of the time and waited for
#: a processor for more than the second.
_BOOT_RAN, _BOOT_WAITED = 0.5, 0.3
#: A booting kernel prints something at least this often, in seconds on an idle host with KVM.
_BOOT_SILENCE_S = 0.4
#: Separates the console from the findings of the diagnosis.
_DIAGNOSIS = "[no answer: state seen from outside]\n"
_STARVED_HINT = "let QEMU run, or give uevt more CPU time"
#: Free bytes below which a disk counts as full.
_MIN_FREE = 1 << 20
#: init/do_mounts.c: no driver for the root device or file system.
_NO_ROOT = re.compile(
    r"VFS: (?:Unable to mount root|Cannot open root)|List of all bdev filesystems"
)
#: The message of vm/guest/supervisor.py after a corrupt frame from the host.
_GAVE_UP = re.compile(r"^uevt: (the host's frame .*)", re.MULTILINE)
#: kernel/reboot.c: a regular shutdown.
_POWERED_OFF = re.compile(r"^\S*\[[ \d.]+\]\S* reboot: ", re.MULTILINE)
#: Panics at boot that are caused by the setup, not by the kernel.
_SETUP_PANIC = re.compile(
    r"No working init found|Requested init .* failed|VFS: |[Oo]ut of memory|deadlocked on memory"
)


def check_space(directory: Path) -> None:
    """Create the directory for the console log.  Raises DiskFull."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        free = os.statvfs(directory)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _disk_full(directory) from None
    if free.f_bavail * free.f_frsize < _MIN_FREE:
        raise _disk_full(directory)


def _disk_full(directory: Path) -> DiskFull:
    return DiskFull(
        f"no space left for the guest's console in {directory}",
        hint="free some, or choose another directory",
    )


class PostMortem(Struct, frozen=True):
    """The evidence about one guest; `before` is the CPU time of QEMU at the last mark."""

    spec: MachineSpec
    console: Console
    power: PowerCycle
    before: CpuTime
    booted_at: int
    marked_at: int
    slowness: float

    def explain_call(self, trouble: GuestTrouble, since: int) -> VmError:
        """The error to raise instead of `trouble`, raised by a call that began at a position."""
        # Include the output between the last mark and the call.
        since = min(since, self.marked_at)
        explained = self._explain_call(trouble, since)
        if explained is trouble and isinstance(trouble, NoAnswer) and not self.power.qemu.alive():
            # QEMU ended during the diagnosis.
            return self._explain_call(ChannelEnded(f"{trouble}"), since)
        return explained

    def explain_boot(self, trouble: GuestTrouble) -> VmError:
        """The error to raise instead of `trouble`, raised while waiting for the first message."""
        returncode = self._returncode(trouble)
        findings = self.console.findings(self.booted_at)
        text = self.console.text(self.booted_at)
        if returncode and not findings:
            return QemuDied(returncode, self.power.qemu.output(), console=text)
        phase = self.console.phase(self.booted_at)
        crash = _crash(findings) or next(
            (found for found in findings if found.kind is ReportKind.INIT_DIED), None
        )
        hang = None
        if crash is None and returncode is None and isinstance(trouble, NoAnswer):
            hang = self._still_booting() or self._diagnosis(use_console=phase is not Phase.SILENT)
        boot = _FailedBoot(phase, crash, hang, reset=returncode == 0 and crash is None)
        failed = self._boot_error(trouble, boot, text)
        # Read again: the diagnosis may have made the kernel print more.
        failed.console = self.console.text(self.booted_at)
        if hang is not None and hang.seen:
            failed.console += f"{_DIAGNOSIS}{hang.seen}"
        failed.findings = findings
        return failed

    def _explain_call(self, trouble: GuestTrouble, since: int) -> VmError:
        returncode = self._returncode(trouble)
        findings = self.console.findings(since)
        text = self.console.text(since)
        explained = self._cause(trouble, returncode, findings, text)
        explained.console = text + explained.console
        explained.findings = findings
        return explained

    def _cause(
        self,
        trouble: GuestTrouble,
        returncode: int | None,
        findings: Sequence[Finding],
        text: str,
    ) -> VmError:
        if crash := _crash(findings):
            return GuestCrashed(crash.text)
        if returncode:
            return QemuDied(returncode, self.power.qemu.output())
        by_kind = {finding.kind: finding.text for finding in findings}
        if ReportKind.INIT_DIED in by_kind:
            return ChannelBroken(f"the agent ended: {by_kind[ReportKind.INIT_DIED]}")
        if returncode == 0:
            return self._cause_of_reset(findings, text)
        if ReportKind.OUT_OF_MEMORY in by_kind:
            return GuestOutOfMemory(f"{trouble}: {by_kind[ReportKind.OUT_OF_MEMORY]}")
        return self._cause_of_silence(trouble) if isinstance(trouble, NoAnswer) else trouble

    def _cause_of_reset(self, findings: Sequence[Finding], text: str) -> VmError:
        if not findings and (last := _GAVE_UP.search(text)):
            return ChannelBroken(f"the agent ended: {last[1]}")
        if _POWERED_OFF.search(text):
            return ChannelBroken("the agent or a program has powered the guest off")
        # A full disk may have swallowed the last console output.
        check_space(self.console.path.parent)
        return GuestCrashed("the guest reset without any console output")

    def _cause_of_silence(self, trouble: NoAnswer) -> VmError:
        diagnosis = self._diagnosis()
        if diagnosis is None:
            return trouble
        why = f"{trouble}: {diagnosis.where}"
        explained: VmError
        if diagnosis.party is Party.HOST:
            check_space(self.console.path.parent)
            explained = QemuStuck(why, hint=_STARVED_HINT)
        elif diagnosis.party is Party.AGENT:
            explained = AgentStuck(why)
        else:
            explained = NoAnswer(why)
            explained.frames, explained.where = diagnosis.frames, diagnosis.where
        explained.console = f"{_DIAGNOSIS}{diagnosis.seen}"
        return explained

    def _diagnosis(self, *, use_console: bool = True) -> Diagnosis | None:
        """What keeps the guest from answering; None if QEMU has ended."""
        console = self.console if use_console else None
        with suppress(MonitorTrouble):
            if self.power.qemu.alive():
                return diagnose(self.power, console, self.before, self.slowness)
        return None

    def _still_booting(self) -> Diagnosis | None:
        """The diagnosis of a slow host.  A booting kernel is busy, so that alone is no hang."""
        why = starved(self.before, self.power.qemu.cpu_time(), _BOOT_RAN, _BOOT_WAITED)
        if not why and self.console.phase(self.booted_at) is not Phase.SILENT:
            silence = time.time() - self.console.path.stat().st_mtime
            if silence < _BOOT_SILENCE_S * self.slowness:
                why = f"the kernel was still booting {silence:.1f} s before"
        return Diagnosis(Party.HOST, why) if why else None

    def _boot_error(self, trouble: GuestTrouble, boot: _FailedBoot, text: str) -> BootFailed:
        why = boot.crash.text if boot.crash else "the guest reset" if boot.reset else str(trouble)
        name = self.spec.kernel.name
        if self.spec.initramfs is None and _NO_ROOT.search(text):
            return NoRoot(
                f"{name} cannot mount its root: {why}",
                phase=boot.phase,
                hint="if its virtio and 9p drivers are modules, give --modules DIR",
            )
        hint = f"read {self.console.path}"
        if boot.hang is not None:
            why += f": {boot.hang.where}"
        if boot.hang is not None and boot.hang.party is Party.HOST:
            hint = _STARVED_HINT
        elif boot.phase is Phase.SILENT:
            why += "; its console was silent"
            hint = f"check that {name} is a kernel for this machine with a console on {CONSOLE}"
        failed = BootFailed(
            f"{name} did not boot (last phase: {boot.phase}): {why}",
            phase=boot.phase,
            hint=hint,
        )
        failed.party = boot.party
        if boot.hang is not None:
            failed.frames, failed.where = boot.hang.frames, boot.hang.where
        return failed

    def _returncode(self, trouble: GuestTrouble) -> int | None:
        """QEMU's exit status; QEMU may end shortly after the channel."""
        return self.power.qemu.wait(_GRACE_S if isinstance(trouble, ChannelEnded) else 0)


class _FailedBoot(Struct, frozen=True):
    """How a boot failed: its last phase, and a crash, a hang or a reset."""

    phase: Phase
    crash: Finding | None
    hang: Diagnosis | None
    reset: bool

    @property
    def party(self) -> Party:
        """The party that has to act."""
        if self.crash is not None:
            of_setup = self.crash.kind is ReportKind.INIT_DIED or _SETUP_PANIC.search(
                self.crash.text
            )
            return Party.AGENT if of_setup else Party.KERNEL
        if self.phase is Phase.SILENT or (self.hang is not None and self.hang.party is Party.HOST):
            return Party.HOST
        if (self.hang is not None and self.hang.frames) or self.reset:
            return Party.KERNEL
        return Party.AGENT if self.phase is Phase.INIT else Party.HOST


def _crash(findings: Sequence[Finding]) -> Finding | None:
    """The first crash: an oops rather than the panic that follows it."""
    return next((found for found in findings if found.kind in CRASHES), None)
