"""An actor: one process of the guest that performs calls on itself and answers with their results.

It is a fork of the supervisor (see supervisor.py), or of another actor, and has a port of its own
to the host.  Descriptors that system calls return can be kept in slots, so that the host never has
to know a descriptor's number.
"""

from __future__ import annotations

import os
from errno import EBADF, EFAULT, EINVAL, EPERM, ESRCH

from vm import wire
from vm.guest import syscalls
from vm.guest.looks import Looks
from vm.guest.port import Port

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vm.guest.driver import Driver

    #: What a call yields before the watched memory is looked at: value, errno, data.
    Outcome = tuple[int, int, bytes | None]

#: fork, vfork, clone and clone3 answer twice; only ["fork", PORT] knows what to do with that.
_FORKING = frozenset((56, 57, 58, 435))
_MASK = (1 << 64) - 1
#: What is asked of a file at first, and while there is much in it, bytes.  For what is asked some
#: files have the kernel clear as much memory, whatever they hold (proc_sys_call_handler).
_LITTLE, _MUCH = 1 << 12, 1 << 16
#: Bytes of a file that shows a number of 64 bits.
_NUMBER_LIMIT = 32
#: In the place of memory that this process may not look at.
NOT_LOOKED_AT = "-"
#: In the place of memory whose process is no more.
GONE = "gone"
_UNSEEN = {EPERM: NOT_LOOKED_AT, ESRCH: GONE}


class BadCall(Exception):
    """The host asked for something that is no call; nothing was performed."""


class NoSlot(Exception):
    """An argument names a slot that holds no descriptor."""


#: What ends a batch: a call that is none, and a task that failed (task.TaskLost).
_NO_ANSWER = (
    BadCall,
    TypeError,
    ValueError,
    KeyError,
    OverflowError,
    MemoryError,
    OSError,
    RuntimeError,
)


class _BecameChild(Exception):
    """This process is the child of a fork: it leaves its parent's batch."""


class Actor:
    """The process's own view of itself: its port, and its descriptors by slot."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._slots: dict[int, int] = {}
        self._scratch = syscalls.Scratch()
        self._looks = Looks()
        self._driver: Driver | None = None
        self._forms: dict[str, Callable[..., Outcome]] = {
            "sys": self._sys,
            "peek": self._peek,
            "poke": self._poke,
            "put_fd": self._put_fd,
            "take_fd": self._take_fd,
            "fork": self._fork,
            "slurp": self._slurp,
            "list": self._list,
            "status": self._status,
            "number": self._number,
            "spill": self._spill,
            "spill_pid": self._spill_pid,
            "submit": self._submit,
            "exit": self._exit,
            "task": self._task,
            "via": self._via,
            "race": self._race,
            "end_tasks": self._end_tasks,
        }

    def serve(self) -> None:
        """Answer requests until the host hangs up (HostGone).  Raises wire.FrameError."""
        self._port.send({"id": 0, "hello": os.getpid()})
        while True:
            request = self._port.receive()
            try:
                self._answer(request)
            except _BecameChild:
                self._port.send({"id": 0, "hello": os.getpid()})

    def _answer(self, request: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            reply["results"] = self._perform(request["calls"], request["watch"])
            self._port.send(reply)
        except _NO_ANSWER as error:
            self._port.send({"id": request["id"], "error": f"{type(error).__name__}: {error}"})
        except wire.FrameError as error:
            self._port.send({"id": request["id"], "error": str(error)})

    def _perform(self, calls: list[list[Any]], watch: list[list[int]]) -> list[dict[str, Any]]:
        """One result per call; an exit has none, for the process's end is the answer."""
        results: list[dict[str, Any]] = []
        unseen = [NOT_LOOKED_AT] * len(watch)
        for call in calls:
            look = call[0] != "unseen"
            if not look:
                call = call[1]
            value, errno, data = self._form(call)(*call[1:])
            seen = self._look_at(watch) if look else unseen
            results.append({"value": value, "errno": errno, "data": _hex(data), "watch": seen})
        return results

    def _look_at(self, watch: list[list[int]]) -> list[str | None]:
        """All that is watched: at once where it is memory of one process and readable."""
        seen = self._looks.at(watch)
        if seen is not None:
            return seen
        return [self._look(*place) for place in watch]

    def _look(self, pid: int, where: int, length: int) -> str | None:
        """Memory of any process; NOT_LOOKED_AT without the right to it, GONE without a process."""
        data, errno = syscalls.read_memory(pid, where, length)
        if errno in _UNSEEN:
            return _UNSEEN[errno]
        return None if errno else data.hex()

    def _form(self, call: list[Any]) -> Callable[..., Outcome]:
        try:
            return self._forms[call[0]]
        except (KeyError, IndexError, TypeError):
            raise BadCall(f"no such call: {call!r:.200}") from None

    def _sys(self, number: int, arguments: list[Any], slot: int | None) -> Outcome:
        if number in _FORKING:
            raise BadCall(f"system call {number} forks: use the call fork")
        self._scratch.clear()
        try:
            plain, out = numbers(arguments, self._slots, self._scratch.place)
        except NoSlot:
            return -1, EBADF, None
        value, errno = syscalls.syscall(number, *plain)
        if errno == 0 and slot is not None:
            self._slots[slot] = value
            value = 0
        data = self._scratch.bytes_at(out, value) if out is not None and value > 0 else None
        return value, errno, data

    def _peek(self, where: int, length: int) -> Outcome:
        data, errno = syscalls.read_memory(os.getpid(), where, length)
        if errno == EFAULT:
            data, errno = syscalls.load_own(where, length)
        return (-1, errno, None) if errno else (length, 0, data)

    def _poke(self, where: int, content: str) -> Outcome:
        data = bytes.fromhex(content)
        value, errno = syscalls.write_memory(os.getpid(), where, data)
        if errno == EFAULT:
            value, errno = syscalls.store_own(where, data)
        return value, errno, None

    def _put_fd(self, where: int, slot: int) -> Outcome:
        """The number of a descriptor, into memory; of one that was closed too."""
        if slot not in self._slots:
            return -1, EBADF, None
        return self._poke(where, self._slots[slot].to_bytes(4, "little").hex())

    def _take_fd(self, where: int, slot: int) -> Outcome:
        """Keep a descriptor whose number a system call left in memory."""
        value, errno, data = self._peek(where, 4)
        if data is not None:
            self._slots[slot] = int.from_bytes(data, "little")
            value = 0
        return value, errno, None

    def _fork(self, port: str) -> Outcome:
        pid, errno = syscalls.fork()
        if pid == 0:
            # Keep what a child keeps, the descriptors of the slots too, but not the parent's port.
            self._port.close()
            self._port = Port(port)
            raise _BecameChild
        return pid, errno, None

    def _status(self, path: str) -> Outcome:
        """Mode, owner and group of a path, as text."""
        try:
            found = os.stat(path)
        except OSError as error:
            return -1, error.errno or 0, None
        text = f"{found.st_mode:o} {found.st_uid}:{found.st_gid}".encode()
        return len(text), 0, text

    def _slurp(self, path: str, limit: int) -> Outcome:
        content = bytearray()
        size = _LITTLE
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                while len(content) < limit:
                    piece = os.read(descriptor, min(limit - len(content), size))
                    if not piece:
                        break
                    if len(piece) == size:
                        size = _MUCH
                    content += piece
            finally:
                os.close(descriptor)
        except OSError as error:
            return -1, error.errno or 0, None
        return len(content), 0, bytes(content)

    def _list(self, path: str) -> Outcome:
        """The names in a directory, a line each."""
        try:
            names = b"".join(os.fsencode(name) + b"\n" for name in os.listdir(path))
        except OSError as error:
            return -1, error.errno or 0, None
        return len(names), 0, names

    def _number(self, path: str, where: int) -> Outcome:
        """Store the decimal number that a file shows, in eight bytes."""
        value, errno, content = self._slurp(path, _NUMBER_LIMIT)
        if errno or content is None:
            return value, errno, None
        digits = content.strip()
        if not digits.isdigit():
            return -1, EINVAL, None
        return self._poke(where, (int(digits) & _MASK).to_bytes(8, "little").hex())

    def _spill(self, path: str, content: str, flags: int) -> Outcome:
        data = bytes.fromhex(content)
        self._scratch.clear()
        where = self._scratch.place(data)
        try:
            descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            return -1, error.errno or 0, None
        # Not os.write(): it takes every negative value for an error, and some are none.
        value, errno = syscalls.syscall(syscalls.SYS_WRITE, descriptor, where, len(data))
        os.close(descriptor)
        return value, errno, None

    def _spill_pid(self, path: str, flags: int) -> Outcome:
        """Write the process's own number to a file."""
        return self._spill(path, (b"%d" % os.getpid()).hex(), flags)

    def _submit(self, slot: int, where: int, count: int, offset: int, vector: bool) -> Outcome:
        """Write through io_uring; what its completion says."""
        if slot not in self._slots:
            return -1, EBADF, None
        # Imported when asked: a start must not wait for it.
        from vm.guest import uring

        value, errno = uring.write(self._slots[slot], where, count, offset, vector=vector)
        return value, errno, None

    def _exit(self, status: int) -> Outcome:
        os._exit(status & 0xFF)

    def _task(self, name: str, maker: str | None, flags: int) -> Outcome:
        if self._driver is None:
            # Imported when asked: few actors make tasks, and a boot must not wait for it.
            from vm.guest.driver import Driver

            self._driver = Driver(self._slots, self._port.fileno())
        return self._driver.make(name, maker, flags)

    def _via(self, name: str, call: list[Any]) -> Outcome:
        if self._driver is None:
            raise BadCall(f"no task named {name!r}")
        return self._driver.via(name, call)

    def _race(self, tracks: list[list[Any]]) -> Outcome:
        if self._driver is None:
            raise BadCall("there are no tasks for a race")
        return self._driver.race(tracks)

    def _end_tasks(self) -> Outcome:
        return self._driver.end() if self._driver else (0, 0, None)


def numbers(
    arguments: list[Any], slots: dict[int, int], place: Callable[[bytes], int]
) -> tuple[list[int], int | None]:
    """Arguments as the kernel gets them, and where an {"out": size} is.

    ``place`` puts bytes into memory.  Raises NoSlot, BadCall.
    """
    out: int | None = None
    plain: list[int] = []
    for argument in arguments:
        if isinstance(argument, int):
            plain.append(argument & _MASK)
            continue
        ((kind, content),) = argument.items()
        if kind == "fd":
            if content not in slots:
                raise NoSlot
            plain.append(slots[content])
        elif kind == "in":
            plain.append(place(bytes.fromhex(content)))
        elif kind == "out":
            out = place(bytes(int(content)))
            plain.append(out)
        else:
            raise BadCall(f"no such argument: {argument!r:.200}")
    return plain, out


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()
