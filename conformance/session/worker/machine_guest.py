"""The guest of the runner: a machine that is replaced by a new one on request."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.ops.calls import FILE_LIMIT, Call, Request
from conformance.runner.guest_setup import ACTOR
from conformance.runner.prepared_guest import OPENING
from conformance.session.controller.recorder import CONSOLE
from conformance.session.target.gcov import COUNTERS
from conformance.session.target.machine import boot_deadline, machine_spec, saved_states
from conformance.session.target.target import Target
from conformance.session.time_limits import Limits, RunLimit
from conformance.session.worker.boot_attempts import BootAttempts
from conformance.session.worker.console_guest import ConsoleGuest
from host.shared_count import SharedCount
from kernels.kconfig import lost
from vm.errors import BootFailed, HostTrouble, VmError
from vm.machine import Machine
from vm.shell.root import Root, root_of
from vm.snapshots.files import snapshot_key

_REBUILD = "rebuild it: uevt kernels build --refresh"


def prepare_machines(target: Target) -> None:
    """Verify the saved state for a target.  Errors are left to the guests, which meet them
    again.
    """
    with contextlib.suppress(Exception):
        if not target.is_model:
            saved_states().verify(snapshot_key(machine_spec(target, OPENING)[0]))


class MachineGuest(ConsoleGuest):
    """A machine as the runner's Guest.

    It starts to boot when it is created; ``wait_ready`` waits for it.
    """

    def __init__(
        self,
        target: Target,
        directory: Path,
        boots: BootAttempts | None = None,
        limit: RunLimit | None = None,
        hung: SharedCount | None = None,
    ) -> None:
        self._target = target
        self._boots = boots or BootAttempts()
        spec, self._root_error = machine_spec(target, OPENING)
        # Answers saved with the machine state, to the requests of OPENING not made yet.
        self._prefetched: deque[tuple[Request, Sequence[dict[str, Any]]]] = deque()
        self._machine = Machine.launch(spec, directory=directory, snapshots=saved_states())
        super().__init__(self._machine, Limits(limit, hung))
        self._counted = target.counted
        self._directory = directory
        # The programs of the host, from the first case that needs them, and what they leave open.
        self._root: Root | None = None
        self._open = contextlib.ExitStack()
        # Number of guests that were replaced.
        self._counter_files = 0

    @property
    def start(self) -> str:
        """How the guest started: restored from a saved state or booted, and why."""
        start = self._machine.start
        return f"{start}: {self._root_error}" if self._root_error else start

    def wait_ready(self) -> None:
        """Wait for the agent.

        Raises what a failed boot raises, and HostTrouble for another kernel than the target.
        """
        with self._joined_console():
            self._machine.wait_ready(boot_deadline(self._machine.spec))
        self._begin()

    @contextlib.contextmanager
    def _joined_console(self) -> Iterator[None]:
        """Name the console of the run in the hint: the run joins those of all guests."""
        try:
            yield
        except BootFailed as error:
            error.hint = f"read {CONSOLE} of this run"
            if self._machine.spec.append:
                error.hint += ", or leave out --append " + shlex.join(self._machine.spec.append)
            raise

    def _begin(self) -> None:
        """Initialize after a boot or restore.  Raises as _check_kernel."""
        self._read_up_to = self._machine.ready_at
        self._prefetched = deque(self._machine.opened)
        self._check_kernel()

    def _check_kernel(self) -> None:
        """Raise HostTrouble for another kernel, or naming the options that the build requested."""
        target = self._target
        runs = self._machine.info["release"] if target.release else ""
        if runs != target.release:
            raise HostTrouble(f"the guest runs {runs} instead of {target.release}", hint=_REBUILD)
        if not target.wanted:
            return
        config = self._machine.info.get("config")
        if config is None:
            # Every kernel built here has CONFIG_IKCONFIG_PROC.
            raise HostTrouble("the booted kernel does not show its configuration", hint=_REBUILD)
        missing = lost(target.wanted, config)
        if missing:
            raise HostTrouble(
                "the booted kernel lacks what its build wanted: " + ", ".join(map(str, missing)),
                hint=_REBUILD,
            )
        if target.config_sha256 not in (None, hashlib.sha256(config.encode()).hexdigest()):
            raise HostTrouble(
                f"the guest's kernel has another configuration than {target.id}", hint=_REBUILD
            )

    def call(
        self,
        actor: str,
        calls: Sequence[Sequence[object]],
        watch: Sequence[tuple[str, int, int]] = (),
    ) -> list[dict[str, Any]]:
        """See conformance.runner.guest.Channel.

        Requests of OPENING are answered from the saved state, until another request is made.
        """
        if self._prefetched:
            request, answers = self._prefetched.popleft()
            if request == (actor, tuple(calls)) and not watch:
                return [dict(answer) for answer in answers]
            self._prefetched.clear()
        return super().call(actor, calls, watch)

    def mark(self, text: str) -> int:
        """See conformance.runner.guest.Guest."""
        if self._current_mark:
            # The next case may end the guest, or forbid to read debugfs.
            self._keep_counters()
        return super().mark(text)

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        """See conformance.runner.guest.Guest."""
        self._limits.end()
        self._keep_counters()
        self._counter_files += 1
        if programs and self._root is None:
            self._root = self._open.enter_context(root_of(None))
        exports = self._root.exports if programs and self._root else ()
        with self._boots.counted():
            with self._joined_console():
                self._machine.pristine(processors, exports)
            self._begin()
        self._current_mark = ""

    def mounting(self) -> Call:
        """See conformance.runner.guest.Guest."""
        assert self._root is not None, "a guest without programs"
        return ["mount_programs", [*map(list, self._root.mounts)], [*map(list, self._root.links)]]

    def configured(self, option: str) -> bool | None:
        """See conformance.runner.guest.Guest."""
        config = self._machine.info.get("config")
        if config is None and self._target.config is not None:
            config = self._target.config.read_text()
        return None if config is None else f"{option}=y" in config.splitlines()

    def _keep_counters(self) -> None:
        """Save the counters of the guest, if it answers."""
        for each in self._counted:
            with contextlib.suppress(VmError):
                (found,) = self.call(ACTOR, [["slurp", each.counters, FILE_LIMIT]])
                if not found["errno"]:
                    file = self._directory / f"{self._counter_files}-{each.notes.stem}{COUNTERS}"
                    file.write_bytes(bytes.fromhex(found["data"]))

    def hand_over(self) -> None:
        """Hand the machine over to a forked worker (Machine.hand_over)."""
        self._machine.hand_over()

    def end(self) -> None:
        """End the machine without saving counters."""
        with self._open, contextlib.suppress(VmError):
            self._machine.close()

    def close(self) -> None:
        """End the machine."""
        self._keep_counters()
        self.end()
