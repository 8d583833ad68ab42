"""What really happened when a call or a boot went wrong: QEMU, the console and the host tell."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
from vm.postmortem.hang import Diagnosis, diagnose, kept_from_running
from vm.qemu.command_line import MachineSpec
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime
from vm.qemu.qmp import MonitorTrouble

#: After the channel has ended: QEMU's own end, and the last lines on the console; seconds.
_GRACE = 2.0
#: A boot that had less of the time than this, and waited for more than that, was not given its due.
_RAN, _WAITED = 0.5, 0.3
#: Who boots says something every now and then, seconds of an unhurried machine.
_TALKING = 0.4
#: What stands between the console and what was found from outside.
_LOOKED = "[no answer: what was found from outside]\n"
_GIVE = "let it run, or give uevt more of the host"
#: Less than this of a disk is none, bytes.
_SPACE = 1 << 20
#: init/do_mounts.c: no driver for the root, or no file system.
_NO_ROOT = re.compile(
    r"VFS: (?:Unable to mount root|Cannot open root)|List of all bdev filesystems"
)
#: The last word of vm/guest/init.py when what we sent made no sense.
_GAVE_UP = re.compile(r"^uevt: (the host's frame .*)", re.MULTILINE)
#: kernel/reboot.c: somebody asked for it.
_SWITCHED_OFF = re.compile(r"^\S*\[[ \d.]+\]\S* reboot: ", re.MULTILINE)
#: What a kernel panics of at boot that is to blame on what it was given.
_GIVEN = re.compile(
    r"No working init found|Requested init .* failed|VFS: |[Oo]ut of memory|deadlocked on memory"
)


def check_space(directory: Path) -> None:
    """Raise DiskFull unless a console can be recorded in a directory, which is made."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        free = os.statvfs(directory)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _disk_full(directory) from None
    if free.f_bavail * free.f_frsize < _SPACE:
        raise _disk_full(directory)


def _disk_full(directory: Path) -> DiskFull:
    return DiskFull(
        f"no space left for the console of the guest in {directory}",
        hint="free some, or name another directory",
    )


@dataclass(frozen=True, slots=True)
class PostMortem:
    """All that there is to look at; `before` is what QEMU had got of the host at the last mark."""

    spec: MachineSpec
    console: Console
    power: PowerCycle
    before: CpuTime
    booted_at: int
    marked_at: int
    slowness: float

    def call(self, trouble: GuestTrouble, since: int) -> VmError:
        """What to raise in the place of what a call raised that began at a position."""
        # What was said between two calls counts as well.
        since = min(since, self.marked_at)
        explained = self._called(trouble, since)
        if explained is trouble and isinstance(trouble, NoAnswer) and not self.power.qemu.alive():
            # It ended while it was looked at.
            return self._called(ChannelEnded(f"{trouble}"), since)
        return explained

    def _called(self, trouble: GuestTrouble, since: int) -> VmError:
        returncode = self._ended(trouble)
        findings = self.console.findings(since)
        said = self.console.text(since)
        explained = self._explained(trouble, returncode, findings, said)
        explained.console = said + explained.console
        explained.findings = findings
        return explained

    def _explained(
        self,
        trouble: GuestTrouble,
        returncode: int | None,
        findings: Sequence[Finding],
        said: str,
    ) -> VmError:
        if crash := _crash(findings):
            return GuestCrashed(crash.text)
        if returncode:
            return QemuDied(returncode, self.power.qemu.said())
        found = {finding.kind: finding.text for finding in findings}
        if ReportKind.INIT_DIED in found:
            return ChannelBroken(f"the agent ended: {found[ReportKind.INIT_DIED]}")
        if returncode == 0 and not findings and (last := _GAVE_UP.search(said)):
            return ChannelBroken(f"the agent ended: {last[1]}")
        if returncode == 0 and _SWITCHED_OFF.search(said):
            return ChannelBroken("the agent, or a program, has switched the guest off")
        if returncode == 0:
            # Its last words may have found no place.
            check_space(self.console.path.parent)
            return GuestCrashed("the guest reset without a word on its console")
        if ReportKind.OUT_OF_MEMORY in found:
            return GuestOutOfMemory(f"{trouble}: {found[ReportKind.OUT_OF_MEMORY]}")
        return self._silent(trouble) if isinstance(trouble, NoAnswer) else trouble

    def _silent(self, trouble: NoAnswer) -> VmError:
        """Whose fault it is that no answer came."""
        found = self._diagnosed()
        if found is None:
            return trouble
        why = f"{trouble}: {found.where}"
        told: VmError
        if found.party is Party.HOST:
            check_space(self.console.path.parent)
            told = QemuStuck(why, hint=_GIVE)
        elif found.party is Party.AGENT:
            told = AgentStuck(why)
        else:
            told = NoAnswer(why)
            told.frames, told.where = found.frames, found.where
        told.console = f"{_LOOKED}{found.seen}"
        return told

    def _diagnosed(self, *, listening: bool = True) -> Diagnosis | None:
        """Who keeps the guest from answering, while it is there."""
        console = self.console if listening else None
        with suppress(MonitorTrouble):
            if self.power.qemu.alive():
                return diagnose(self.power, console, self.before, self.slowness)
        return None

    def boot(self, trouble: GuestTrouble) -> VmError:
        """What to raise in the place of what a boot raised."""
        returncode = self._ended(trouble)
        findings = self.console.findings(self.booted_at)
        if returncode and not findings:
            return QemuDied(
                returncode, self.power.qemu.said(), console=self.console.text(self.booted_at)
            )
        phase = self.console.phase(self.booted_at)
        crash = _crash(findings) or next(
            (found for found in findings if found.kind is ReportKind.INIT_DIED), None
        )
        hung = None
        if crash is None and returncode is None and isinstance(trouble, NoAnswer):
            hung = self._still_booting() or self._diagnosed(listening=phase is not Phase.SILENT)
        reset = returncode == 0 and crash is None
        failed = self._failed(trouble, phase, crash, hung, reset=reset)
        failed.console = self.console.text(self.booted_at)
        if hung is not None and hung.seen:
            failed.console += f"{_LOOKED}{hung.seen}"
        failed.findings = findings
        return failed

    def _still_booting(self) -> Diagnosis | None:
        """A host too slow for a boot that goes on, None if it hangs: it is busy all the time."""
        kept = kept_from_running(self.before, self.power.qemu.cpu_time(), _RAN, _WAITED)
        if not kept and self.console.phase(self.booted_at) is not Phase.SILENT:
            silence = time.time() - self.console.path.stat().st_mtime
            if silence < _TALKING * self.slowness:
                kept = f"its kernel was still coming up {silence:.1f} s before"
        return Diagnosis(Party.HOST, kept) if kept else None

    def _failed(
        self,
        trouble: GuestTrouble,
        phase: Phase,
        crash: Finding | None,
        hung: Diagnosis | None,
        *,
        reset: bool,
    ) -> VmError:
        why = crash.text if crash else "the guest reset" if reset else str(trouble)
        name, said = self.spec.kernel.name, self.console.text(self.booted_at)
        if self.spec.initramfs is None and _NO_ROOT.search(said):
            return NoRoot(
                f"{name} cannot mount its root: {why}",
                phase=phase,
                hint="where its drivers for virtio and 9p are modules, give --modules DIR",
            )
        if hung is not None:
            why += f": {hung.where}"
        hint = f"read {self.console.path}"
        if hung is not None and hung.party is Party.HOST:
            hint = _GIVE
        elif phase is Phase.SILENT:
            # A kernel that was never heard cannot be told from a file that is none.
            why += "; its console was silent"
            hint = f"check that {name} is a kernel for this machine with a console on {CONSOLE}"
        failed = BootFailed(
            f"no agent after a boot of {name} (reached phase {phase}): {why}",
            phase=phase,
            hint=hint,
        )
        failed.party = _party_of_boot(phase, crash, hung, reset=reset)
        if hung is not None:
            failed.frames, failed.where = hung.frames, hung.where
        return failed

    def _ended(self, trouble: GuestTrouble) -> int | None:
        """QEMU's exit status; after the channel's end it is given a moment to come."""
        return self.power.qemu.wait(_GRACE if isinstance(trouble, ChannelEnded) else 0)


def _party_of_boot(
    phase: Phase, crash: Finding | None, hung: Diagnosis | None, *, reset: bool
) -> Party:
    """Who keeps a guest from coming up."""
    if crash is not None:
        given = crash.kind is ReportKind.INIT_DIED or _GIVEN.search(crash.text)
        return Party.AGENT if given else Party.KERNEL
    if phase is Phase.SILENT or (hung is not None and hung.party is Party.HOST):
        return Party.HOST
    if (hung is not None and hung.frames) or reset:
        return Party.KERNEL
    return Party.AGENT if phase is Phase.INIT else Party.HOST


def _crash(findings: Sequence[Finding]) -> Finding | None:
    """The first line of a crash: an oops rather than the panic that it causes."""
    return next((found for found in findings if found.kind in CRASHES), None)
