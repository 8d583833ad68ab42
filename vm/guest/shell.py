"""A program of the user: a root with the host's programs, and a relay of its input and output.

The relay is a process of its own.  It and the host exchange frames over a stream port: a kind and a
length (HEADER), then that many bytes.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what the module signal wraps
import ctypes
import os
import select
import struct
from errno import ENOENT

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from typing import Any

HEADER = struct.Struct("<BI")
#: Kinds of frames.  INPUT and SIZE (rows and columns) go to the guest; OUTPUT, ERRORS and STATUS
#: (a wait status, the last frame) come from it.  An empty INPUT is the end of the input.
INPUT, OUTPUT, ERRORS, STATUS, SIZE = range(5)
SIZES = struct.Struct("<HH")
STATUSES = struct.Struct("<i")
#: Bytes read at once.
CHUNK = 1 << 16

#: The root of programs, a tmpfs.
ROOT = "/mnt"
_DIRECTORIES = ("dev", "etc", "host", "mnt", "proc", "root", "run", "sys", "tmp", "usr", "var")
#: (type, mount point below ROOT, options).
_MOUNTS = (
    ("proc", "proc", ""),
    ("sysfs", "sys", ""),
    ("devtmpfs", "dev", ""),
    ("devpts", "dev/pts", "ptmxmode=666,mode=620"),
    ("tmpfs", "dev/shm", "mode=1777"),
    ("tmpfs", "tmp", "mode=1777"),
    ("debugfs", "sys/kernel/debug", ""),
    ("tracefs", "sys/kernel/tracing", ""),
)
_TIOCSCTTY, _TIOCSWINSZ = 0x540E, 0x5414
_libc = ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """Create the root, without files of the host: a snapshot can be saved afterwards.

    A file system that the kernel lacks is left out.  Raises OSError without tmpfs.
    """
    _mount("tmpfs", ROOT, "mode=755")
    for name in _DIRECTORIES:
        os.mkdir(f"{ROOT}/{name}")
    for kind, where, options in _MOUNTS:
        try:
            os.makedirs(f"{ROOT}/{where}", exist_ok=True)
            _mount(kind, f"{ROOT}/{where}", options)
        except OSError:
            pass


def mount_exports(mounts: list[list[Any]], links: list[list[str]]) -> None:
    """Mount directories of the host below the root, and make links to them.  Raises OSError."""
    for tag, where, options, flags in mounts:
        if not os.path.ismount(ROOT + where):
            os.makedirs(ROOT + where, exist_ok=True)
            _mount("9p", ROOT + where, options, flags, tag)
    for name, target in links:
        if not os.path.lexists(ROOT + name):
            os.symlink(target, ROOT + name)


def _mount(kind: str, where: str, options: str, flags: int = 0, source: str = "") -> None:
    words = [word.encode() for word in (source or kind, where, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode()):
        error = ctypes.get_errno()
        raise OSError(error, f"mount {kind}: {os.strerror(error)}", where)


def start(port: int, words: list[str], environment: dict[str, str], size: list[int] | None) -> int:
    """Fork a relay that runs a program in the root, in /host; its process id.

    With a `size` (rows, columns) the program has a terminal, else three pipes.
    """
    relay = os.fork()
    if relay:
        return relay
    try:
        os.chroot(ROOT)
        os.chdir("/host")
        (_on_terminal if size else _on_pipes)(port, words, environment, size or [])
    finally:
        os._exit(1)


def _on_terminal(port: int, words: list[str], environment: dict[str, str], size: list[int]) -> None:
    master, terminal = os.openpty()
    _resize(master, *size)
    child = os.fork()
    if child == 0:
        os.setsid()
        _libc.ioctl(terminal, _TIOCSCTTY, 0)
        execute(words, environment, (terminal, terminal, terminal))
    os.close(terminal)
    Relay(port, child, master, {master: OUTPUT}).run()


def _on_pipes(port: int, words: list[str], environment: dict[str, str], _: list[int]) -> None:
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    ours_error, theirs_error = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        execute(words, environment, (theirs_in, theirs_out, theirs_error))
    for descriptor in (theirs_in, theirs_out, theirs_error):
        os.close(descriptor)
    Relay(port, child, ours_in, {ours_out: OUTPUT, ours_error: ERRORS}).run()


def execute(words: list[str], environment: dict[str, str], descriptors: tuple[int, ...]) -> None:
    """Become the program; on failure exit as a shell does."""
    # Python ignores it, and programs would inherit that.
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    reason: OSError = FileNotFoundError(ENOENT, os.strerror(ENOENT))
    # os.execvpe would import modules, which are outside of the root.
    places = [""] if "/" in words[0] else [f"{each}/" for each in environment["PATH"].split(":")]
    for place in places:
        try:
            os.execve(place + words[0], words, environment)
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = error
    os.write(2, f"uevt: {words[0]}: {reason.strerror}\n".encode())
    os._exit(127 if reason.errno == ENOENT else 126)


def _resize(terminal: int, rows: int, columns: int) -> None:
    size = struct.pack("HHHH", rows, columns, 0, 0)
    _libc.ioctl(terminal, ctypes.c_ulong(_TIOCSWINSZ), size)


class Relay:
    """Copy between a port and the descriptors of a program until the program ends."""

    def __init__(self, port: int, child: int, source: int, outputs: dict[int, int]) -> None:
        self._port = port
        self._child = child
        #: The descriptor that the program reads from, None after its end of input.
        self._source: int | None = source
        self._outputs = outputs
        #: Bytes from the host that are no complete frame yet; input not written yet.
        self._received = b""
        self._input = b""
        self._input_ends = False

    def run(self) -> None:
        """Relay, and report the wait status of the program."""
        if self._source is not None:
            os.set_blocking(self._source, False)
        ended = os.pidfd_open(self._child)
        while True:
            poll = select.poll()
            for descriptor in self._outputs:
                poll.register(descriptor, select.POLLIN)
            poll.register(ended, select.POLLIN)
            if self._input and self._source is not None:
                poll.register(self._source, select.POLLOUT)
            else:
                poll.register(self._port, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll()}
            for descriptor in ready & self._outputs.keys():
                self._pass_on(descriptor)
            if ended in ready:
                break
            if self._port in ready:
                self._receive()
            self._feed()
        for descriptor in list(self._outputs):
            while select.select([descriptor], [], [], 0)[0] and self._pass_on(descriptor):
                pass
        self._send(STATUS, STATUSES.pack(os.waitpid(self._child, 0)[1]))

    def _pass_on(self, descriptor: int) -> bool:
        """Send the available output; whether there may be more."""
        try:
            data = os.read(descriptor, CHUNK)
        except OSError:
            # A terminal that no process has open.
            data = b""
        if data:
            self._send(self._outputs[descriptor], data)
        else:
            del self._outputs[descriptor]
        return bool(data)

    def _send(self, kind: int, data: bytes) -> None:
        rest = memoryview(HEADER.pack(kind, len(data)) + data)
        while rest:
            rest = rest[os.write(self._port, rest) :]

    def _receive(self) -> None:
        self._received += os.read(self._port, CHUNK)
        while len(self._received) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._received)
            end = HEADER.size + length
            if len(self._received) < end:
                return
            self._handle(kind, self._received[HEADER.size : end])
            self._received = self._received[end:]

    def _handle(self, kind: int, data: bytes) -> None:
        if kind == SIZE and self._source is not None:
            _resize(self._source, *SIZES.unpack(data))
        elif kind == INPUT:
            self._input += data
            self._input_ends = self._input_ends or not data

    def _feed(self) -> None:
        """Write as much input as the program takes."""
        if self._source is None:
            self._input = b""
            return
        try:
            while self._input:
                self._input = self._input[os.write(self._source, self._input) :]
        except BlockingIOError:
            return
        except OSError:
            # The program has closed its input.
            self._input, self._input_ends = b"", True
        if self._input_ends:
            if self._source not in self._outputs:
                os.close(self._source)
            self._source = None
