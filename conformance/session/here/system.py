"""The system that a run on the running kernel borrows: claim it, note its state, put it back.

The state is in a file before anything is changed.  A run that was killed leaves the file, and the
next one begins by restoring what it says.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from conformance.results.json_codec import SchemaError, decode
from conformance.session.here import occupancy
from conformance.session.here.errors import Refused
from conformance.session.here.leftovers import remove_leftovers
from conformance.session.here.privileges import require_privileges
from conformance.session.here.settings import (
    DEVKMSG,
    expand_buffer,
    expected,
    read_attributes,
    read_settings,
    setting,
    write_attributes,
    write_back,
)
from conformance.session.here.tracefs_mount import current_options, ensure_tracefs, set_options
from host.deadline import Deadline
from host.files import read_record, write_record
from host.text import counted
from kernels.errors import HostTrouble
from vm.here.processes import end_session

_DIRECTORY = Path("/run/uevt")
_STATE, _LOCK = "state.json", "lock"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: Seconds in which the processes of a killed run must end.
_END_S = 10.0


class SystemState(Struct, frozen=True):
    """What a run may change, as it was before.

    ``session`` is that of the agent's processes, 0 before they start, and ``session_started`` the
    start of its leader in clock ticks since boot; ``foreign`` are names of user events of others.
    ``broken`` says why nothing can be restored before a reboot.
    """

    boot_id: str
    settings: dict[str, str]
    attributes: dict[str, tuple[int, int, int]]
    superblock: str
    foreign: tuple[str, ...]
    session: int = 0
    session_started: str = ""
    broken: str = ""

    def __post_init__(self) -> None:
        if any(len(each) != 3 for each in self.attributes.values()):
            raise ValueError("attributes are mode, owner and group")


class BorrowedSystem:
    """The running system, claimed by this process until it ends."""

    def __init__(self, directory: Path = _DIRECTORY) -> None:
        self._file = directory / _STATE
        self._lock = -1
        self._state: SystemState | None = None
        self._broken = ""
        # The settings of the run.
        self._during: dict[str, str] = {}
        #: User events of other programs, which no comparison sees.
        self.foreign: frozenset[str] = frozenset()

    @classmethod
    def claim(cls, *, even_so: bool, directory: Path = _DIRECTORY) -> BorrowedSystem:
        """Claim the system: no other run has it, and nothing is changed yet.

        What a killed run has left is restored first.  Raises Refused, HostTrouble, OSError.
        """
        require_privileges()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        system = cls(directory)
        system._take_lock(directory / _LOCK)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            # The end of a terminal ends a run like Ctrl-C.
            signal.signal(signal.SIGHUP, signal.default_int_handler)
        if note := ensure_tracefs():
            _say(note)
        system._recover()
        system._require_quiet(even_so=even_so)
        _require_marks()
        return system

    def _take_lock(self, file: Path) -> None:
        """Raise Refused while another run holds the lock; the kernel releases it at its end."""
        self._lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read_text().strip()
            raise Refused(
                f"another run --here is in progress: process {holder}", "wait for its end"
            ) from None
        os.truncate(self._lock, 0)
        os.write(self._lock, f"{os.getpid()}\n".encode())

    def _recover(self) -> None:
        """Restore what a killed run has left.  Raises HostTrouble."""
        if not self._file.exists():
            return
        try:
            state = decode(SystemState, read_record(self._file), "state")
        except SchemaError as error:
            raise HostTrouble(
                f"{self._file} is malformed: {error}",
                "check the settings of tracing by hand, then delete the file",
            ) from error
        if state.boot_id != _boot_id():
            # The reboot has put everything back.
            self._file.unlink()
            return
        if state.broken:
            raise HostTrouble(f"an earlier run broke the kernel: {state.broken}", "reboot")
        _say("restoring the system after a run --here that was killed")
        self._state = state
        if failed := self._put_back():
            raise HostTrouble(
                f"cannot be restored after a killed run: {'; '.join(failed)}",
                f"reboot, or restore that by hand and delete {self._file}",
            )
        _say("restored")

    def _require_quiet(self, *, even_so: bool) -> None:
        """Raise Refused where a run would disturb others."""
        if busy := occupancy.tracing_in_progress():
            raise Refused(
                f"tracing is in use: {'; '.join(busy)}",
                "a run would change or erase that: save it, and end it",
            )
        found = occupancy.user_events()
        if found and not even_so:
            raise Refused(
                f"{counted(len(found), 'user event')} of other programs: {occupancy.listed(found)}",
                "end these programs, or leave their events alone and skip the cases that need a "
                "system without events: --even-so",
            )
        self.foreign = frozenset(found)

    def begin(self) -> None:
        """Note the state of the system, and set what cases expect.  Raises OSError."""
        expand_buffer()
        state = SystemState(
            boot_id=_boot_id(),
            settings=read_settings(),
            attributes=read_attributes(),
            superblock=current_options(),
            foreign=tuple(sorted(self.foreign)),
        )
        self._keep(state)
        self._during = expected(state.settings)
        for path, value in self._during.items():
            if value != state.settings[path]:
                Path(path).write_text(f"{value}\n")

    def note_session(self, session: int) -> None:
        """Note the session of the agent's processes.  Raises OSError."""
        assert self._state is not None
        started = _started(session)
        self._keep(replace(self._state, session=session, session_started=started))

    def _keep(self, state: SystemState) -> None:
        self._state = state
        write_record(self._file, asdict(state))

    def tidy(self) -> None:
        """Remove what cases have left, and set again what cases expect.

        User events that cannot be removed count as those of others from now on.
        """
        assert self._state is not None
        left = remove_leftovers(self.foreign)
        left += write_back(self._during) + write_attributes(self._state.attributes)
        for line in left:
            _say(f"not restored: {line}")
        self.foreign |= frozenset(occupancy.user_events())

    def give_up(self, why: str) -> None:
        """Restore nothing: the kernel could hold this process as well.  Raises OSError."""
        if self._state is not None:
            self._keep(replace(self._state, broken=why))
            self._state, self._broken = None, why
            _say(f"the system is not restored: {why}; reboot")

    def restore(self) -> list[str]:
        """Put everything back; what could not be restored, a line each.  Idempotent.

        After ``give_up`` nothing is, for its reason.
        """
        if self._state is None:
            return [self._broken] if self._broken else []
        with _uninterrupted():
            failed = self._put_back()
        for line in failed:
            _say(f"not restored: {line}")
        return failed

    def _put_back(self) -> list[str]:
        state = self._state
        assert state is not None
        stuck = []
        if state.session and _started(state.session) in ("", state.session_started):
            stuck = end_session(state.session, Deadline(_END_S, "end of the agent"))
        if stuck:
            # The kernel could hold this process as well.
            return [f"{each} and cannot be killed" for each in stuck]
        if state.superblock and current_options() != state.superblock:
            set_options(state.superblock)
        failed = [f"{each} is left" for each in remove_leftovers(state.foreign)]
        failed += write_back(state.settings)
        failed += write_attributes(state.attributes)
        if not failed:
            self._state = None
            self._file.unlink(missing_ok=True)
        return failed


def _require_marks() -> None:
    """Raise Refused if the log takes no marks of programs, by a kernel argument."""
    value = setting(DEVKMSG)
    try:
        Path(DEVKMSG).write_text(f"{value}\n")
    except OSError:
        if value != "on":
            raise Refused(
                f"{DEVKMSG} is {value} and cannot be changed",
                "boot without the kernel argument printk.devkmsg, or with printk.devkmsg=on",
            ) from None


def _say(text: str) -> None:
    sys.stderr.write(f"uevt: {text}\n")


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip()


def _started(pid: int) -> str:
    """The start time of a process, "" if there is none of this id."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    # proc(5): field 22; the third follows the name in parentheses.
    return text.rpartition(")")[2].split()[19]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM: the time for restoring is limited."""
    before = {
        number: signal.signal(number, signal.SIG_IGN)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
