"""Guests for the runner: a machine that reboots itself."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.client import executor as sut
from conformance.ops.calls import Request
from conformance.results.case_result import Report
from conformance.runner.guest_lifecycle import OPENING
from conformance.runner.guest_setup import ACTOR
from conformance.session.controller.recorder import CONSOLE
from conformance.session.target.gcov import COUNTERS
from conformance.session.target.target import Target
from conformance.session.time_limits import CASE_S, Limits, RunLimit
from conformance.session.worker.blame import HARMLESS, report
from host.deadline import Deadline
from kernels.kconfig import lost
from kernels.store.store import default_root
from vm.errors import BootFailed, HostTrouble, VmError
from vm.machine import Machine, MachineSpec, Mark
from vm.qemu.root_archive import interpreter, root_archive
from vm.snapshots.files import Snapshots, snapshot_key

# Seconds of an idle machine from QEMU's start to the agent's first answer.
BOOT_S = 12.0
_PAUSE = 0.003
# Bytes of an object's counters.
_COUNTERS = 1 << 24
# So often in a row is a kernel started that does not come up.
_BOOTS = 2
_REBUILD = "rebuild it: uevt kernels build --refresh"


class ConfigLost(HostTrouble):
    """The booted kernel lacks an option that its build wanted."""


class AnotherKernel(HostTrouble):
    """The guest runs another kernel than the one that is to be judged."""


def machine_spec(target: Target) -> tuple[MachineSpec, str]:
    """The machine that judges a target, and why it has no root of its own where it should.

    Raises VmError.
    """
    assert target.image is not None
    assert target.accelerator is not None
    root, why = None, ""
    # What loads drivers goes on to the host's root instead.
    if target.initramfs is None:
        try:
            root = root_archive(interpreter(), default_root())
        except OSError as error:
            # Such as a store that may only be read: the host's root will do.
            why = f"its root could not be kept: {error}"
    spec = MachineSpec(
        target.image,
        target.accelerator,
        memory_mib=target.memory_mib,
        append=target.append,
        root=root,
        initramfs=target.initramfs,
        cache=default_root(),
        opening=OPENING,
    )
    return spec, why


def prepare_machines(target: Target) -> None:
    """Find out what all machines of a target want to know; they tell what is wrong with it."""
    with contextlib.suppress(Exception):
        if not target.is_model:
            saved_states().verify(snapshot_key(machine_spec(target)[0]))


def saved_states() -> Snapshots:
    """Where the states of machines are kept."""
    return Snapshots(default_root() / "snapshots")


class BootAttempts:
    """How often in a row a kernel was started and did not come up."""

    def __init__(self) -> None:
        self._failures: list[VmError] = []

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Around one boot.  Raises HostTrouble in its place when it was tried too often."""
        if len(self._failures) == _BOOTS:
            # Each would take its whole time again; the consoles were shown with the others.
            last = self._failures[-1]
            again = HostTrouble(f"not booted again: {last}", hint=last.hint)
            if isinstance(last, BootFailed):
                again = BootFailed(f"{again}", phase=last.phase, hint=last.hint)
                again.party, again.findings = last.party, last.findings
            raise again
        try:
            yield
        except VmError as error:
            self._failures.append(error)
            raise
        self._failures.clear()


class MachineGuest:
    """A machine as the runner sees it.

    It begins to boot when it is made; whoever asks first waits for it (``wait_ready``).
    """

    def __init__(
        self,
        target: Target,
        directory: Path,
        boots: BootAttempts | None = None,
        limit: RunLimit | None = None,
    ) -> None:
        assert target.image is not None
        assert target.accelerator is not None
        self._target = target
        self._boots = boots or BootAttempts()
        self._limits = Limits(limit)
        spec, self._rootless = machine_spec(target)
        slowness = target.accelerator.slowness
        self._boot_s = BOOT_S * slowness
        # The last mark, until it was seen on the console.
        self._mark: Mark | None = None
        # The words of the last mark, and of the one before it.
        self._marked = self._before = ""
        # How far the console was looked through, at first to where the guest was ready.
        self._looked = 0
        # What is left of its opening: answers to what it was asked before its state was saved.
        self._opened: deque[tuple[Request, Sequence[dict[str, Any]]]] = deque()
        # Where on it begins what was reported last.
        self._reported: int | None = None
        self._machine = Machine.launch(spec, directory=directory, snapshots=saved_states())
        self._counted = target.counted
        self._directory = directory
        # Guests of ours whose counters were kept.
        self._kept = 0

    @property
    def start(self) -> str:
        """How the guest came up: restored from a saved state or booted, and why."""
        start = self._machine.start
        return f"{start}: {self._rootless}" if self._rootless else start

    def wait_ready(self) -> None:
        """Wait for the agent.

        Raises what a failed boot raises, ConfigLost and AnotherKernel.
        """
        try:
            self._machine.wait_ready(Deadline(self._boot_s, "agent after the boot"))
        except BootFailed as error:
            # The consoles of all guests are joined at the end of the run.
            error.hint = f"read {CONSOLE} of this run"
            if self._machine.spec.append:
                error.hint += ", or leave out --append " + shlex.join(self._machine.spec.append)
            raise
        self._begin()

    def _begin(self) -> None:
        """A machine that has just got ready, restored or booted.  Raises as _check_kernel."""
        self._looked = self._machine.ready_at
        self._opened = deque(self._machine.opened)
        self._check_kernel()

    def _check_kernel(self) -> None:
        """Raise AnotherKernel, or ConfigLost naming the options that did not survive."""
        target = self._target
        runs = self._machine.info["release"] if target.release else ""
        if runs != target.release:
            raise AnotherKernel(
                f"the guest runs {runs}, and {target.release} was asked for",
                hint=_REBUILD,
            )
        if not target.wanted:
            return
        config = self._machine.info.get("config")
        if config is None:
            # Every kernel of ours is built to show it.
            raise ConfigLost("the booted kernel does not show its configuration", hint=_REBUILD)
        missing = lost(target.wanted, config)
        if missing:
            raise ConfigLost(
                "the booted kernel lacks what its build wanted: " + ", ".join(map(str, missing)),
                hint=_REBUILD,
            )
        if target.config_sha256 not in (None, hashlib.sha256(config.encode()).hexdigest()):
            raise AnotherKernel(
                f"the guest's kernel has another configuration than {target.id}", hint=_REBUILD
            )

    def call(
        self,
        actor: str,
        calls: Sequence[Sequence[object]],
        watch: Sequence[tuple[str, int, int]] = (),
    ) -> list[dict[str, Any]]:
        """See conformance.runner.guest_executor.Channel.

        What it was asked at its opening is not asked again, as long as nothing else was.
        """
        if self._opened:
            request, answers = self._opened.popleft()
            if request == (actor, tuple(calls)) and not watch:
                return [dict(answer) for answer in answers]
            self._opened.clear()
        deadline = self._limits.clip(self._machine.call_deadline(actor))
        return self._machine.call(actor, calls, watch, deadline=deadline)

    def deadline(self, seconds: float, what: str) -> Deadline:
        """See conformance.runner.guest_executor.Channel."""
        return self._machine.deadline(seconds, what)

    def pause(self, deadline: sut.Deadline) -> None:
        """See conformance.runner.guest_executor.Channel."""
        time.sleep(min(_PAUSE, deadline.remaining()))

    def mark(self, text: str) -> int:
        """See conformance.runner.runner.Guest."""
        self._limits.begin(self._machine.deadline(CASE_S, f"end of {text}"))
        self._mark = self._machine.mark(text)
        self._before, self._marked = self._marked, text
        return self._mark.position

    def console(self, since: int) -> str:
        """See conformance.runner.runner.Guest."""
        start = since if self._reported is None else min(since, self._reported)
        return self._machine.console.text(start)

    def reports(self, since: int) -> list[Report]:
        """See conformance.runner.runner.Guest."""
        if self._mark is not None:
            self._machine.check(self._mark)
            self._mark = None
        # What was said after the last look is of work that the kernel did later.
        start = min(since, self._looked)
        self._looked = self._machine.console.position()
        reports = [
            report(each, self._before if start < since and each.mark != self._marked else "")
            for each in self._machine.console.findings(start)
            if each.kind not in HARMLESS
        ]
        self._reported = start if any(each.after for each in reports) else None
        return reports

    def pristine(self, processors: int = 1) -> None:
        """See conformance.runner.runner.Guest."""
        self._keep_counters()
        with self._boots.counted():
            self._machine.pristine(processors)
            self._begin()
        self._marked = ""

    def _keep_counters(self) -> None:
        """Keep what a guest that is about to go has counted, if it still answers."""
        for each in self._counted:
            with contextlib.suppress(VmError):
                (found,) = self.call(ACTOR, [["slurp", each.counters, _COUNTERS]])
                if not found["errno"]:
                    file = self._directory / f"{self._kept}-{each.notes.stem}{COUNTERS}"
                    file.write_bytes(bytes.fromhex(found["data"]))
        self._kept += 1

    def leave(self) -> None:
        """Hand the machine over to a forked worker: see Machine.hand_over."""
        self._machine.hand_over()

    def end(self) -> None:
        """Nothing of the machine is left, and nothing was counted in it."""
        with contextlib.suppress(VmError):
            self._machine.close()

    def close(self) -> None:
        """Nothing of the machine is left."""
        self._keep_counters()
        self.end()
