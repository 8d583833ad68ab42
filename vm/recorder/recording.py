"""The recording of a program: lines of words, and what they mean.

A group of lines begins with one of

``start TID``
    The program was executed.
``call TID TGID NUMBER COMPAT A0 … A5``
    A system call, with its x86-64 number; COMPAT is 1 for the 32-bit entry.
``exit TID RESULT``
    The same call returned.
``fork TID CHILD TGID FLAGS``, ``exec TID FORMER``, ``exiting TID``, ``end TID STATUS``
    A task created another one, executed a program, is the last of its process to end, has ended
    (wait status).
``listening KIND ERRNO``, ``overlap TID``, ``stranger TID``, ``done``
    The listener started; calls were not kept apart; a task without known creator; the last line.

and its details follow:

``file FD PATH``, ``credentials UID GID CAPABILITIES [NAMESPACE]``
    A descriptor of the task; its credentials for the file system.  NAMESPACE is 1 if they count in
    a user namespace other than that of the recorder.
``memory ADDRESS LENGTH BYTES``, ``rights ADDRESS RIGHTS``
    Memory up to the first byte that cannot be read; the rights of a mapping as in /proc/PID/maps.
``enable SYSTEM ERRNO``, ``event SYSTEM ID NAME``, ``perf ID CPU ERRNO``
    The listener enabled all events of a system, found an event, attached perf to it.
``page CPU BYTES``, ``sample CPU TYPE BYTES``
    A page of trace_pipe_raw, a record of a perf ring.

Numbers without a sign are hexadecimal where they are addresses, arguments or flags of clone(2).
Paths, names and bytes are in hexadecimal, "-" if empty.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from vm.errors import ChannelBroken

_ARGUMENTS = 6


class File(Struct, frozen=True):
    """A descriptor: its number, and the path of the file."""

    descriptor: int
    path: str


class Memory(Struct, frozen=True):
    """Memory at an address; ``wanted`` bytes were to be read."""

    address: int
    wanted: int
    data: bytes


class Credentials(Struct, frozen=True):
    """File-system user and group, and the effective capabilities, perhaps of a user namespace."""

    uid: int
    gid: int
    capabilities: int
    in_user_namespace: bool = False


class Enabled(Struct, frozen=True):
    """The listener enabled all events of a system; error number, 0 on success."""

    system: str
    errno: int


class Event(Struct, frozen=True):
    """An event that the listener found: its directory and its id."""

    system: str
    id: int
    name: str


class Attached(Struct, frozen=True):
    """perf_event_open(2) of an event on a CPU; error number."""

    id: int
    cpu: int
    errno: int


class Page(Struct, frozen=True):
    """A page of trace_pipe_raw, without its unused end."""

    cpu: int
    data: bytes


class Sample(Struct, frozen=True):
    """A record of a perf ring: type, and body without header."""

    cpu: int
    kind: int
    data: bytes


class Details(Struct):
    """What was read when a group was written, in this order within each kind."""

    files: list[File] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    rights: dict[int, str] = field(default_factory=dict)
    credentials: Credentials | None = None
    enabled: list[Enabled] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    attached: list[Attached] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    # Memory read after the listener enabled an event.
    enabled_memory: list[Memory] = field(default_factory=list)

    def add_memory(self, read: Memory) -> None:
        """Add memory to that read before or after the listener acted."""
        acted = self.enabled or self.attached or self.events
        (self.enabled_memory if acted else self.memory).append(read)


class Call(Struct):
    """A system call; ``result`` is None if it did not return."""

    tid: int
    tgid: int
    number: int
    compat: bool
    arguments: tuple[int, ...]
    result: int | None = None
    before: Details = field(default_factory=Details)
    after: Details = field(default_factory=Details)


class Entry(Struct):
    """Any other group: its keyword, its numbers, and details."""

    kind: str
    numbers: tuple[int, ...]
    word: str = ""
    details: Details = field(default_factory=Details)


Group = Call | Entry


class BadRecording(ChannelBroken):
    """A recording that the recorder did not write like this."""


def groups(lines: Iterable[str]) -> Iterator[Group]:
    """The groups of a recording; a call stands where it returned, with what was read then.

    A line that was cut off by the end of the guest is ignored.  Raises BadRecording.
    """
    open_calls: dict[int, Call] = {}
    details = Details()
    # Complete when the next group begins.
    last: Group | None = None
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            break
        try:
            keyword, *words = line.split()
            if keyword in _DETAILS:
                _DETAILS[keyword](details, *words)
                continue
            if last is not None:
                yield last
                last = None
            if keyword == "call":
                call = _call(words)
                open_calls[call.tid] = call
                details = call.before
            elif keyword == "exit":
                last = returned = open_calls.pop(int(words[0]))
                returned.result = int(words[1])
                details = returned.after
            else:
                last = entry = _entry(keyword, words)
                details = entry.details
                if keyword == "end" and (lost := open_calls.pop(entry.numbers[0], None)):
                    yield lost
        except (KeyError, ValueError, IndexError, TypeError) as error:
            shown = f"line {number} of the recording: {line[:60]!r}"
            raise BadRecording(f"{shown}: {error!r}") from None
    if last is not None:
        yield last
    yield from open_calls.values()


def _call(words: Sequence[str]) -> Call:
    tid, tgid, number, compat = map(int, words[:4])
    arguments = tuple(int(word, 16) for word in words[4:])
    if len(arguments) != _ARGUMENTS:
        raise ValueError(f"{len(arguments)} arguments")
    return Call(tid, tgid, number, bool(compat), arguments)


def _entry(keyword: str, words: Sequence[str]) -> Entry:
    match keyword, words:
        case "listening", [kind, number]:
            return Entry(keyword, (int(number),), kind)
        case "fork", [tid, child, tgid, flags]:
            return Entry(keyword, (int(tid), int(child), int(tgid), int(flags, 16)))
    if keyword not in _ENTRIES:
        raise ValueError("unknown keyword")
    return Entry(keyword, tuple(map(int, words)))


_ENTRIES = ("start", "exec", "exiting", "end", "overlap", "stranger", "done")


def _bytes(word: str) -> bytes:
    return b"" if word == "-" else bytes.fromhex(word)


def _credentials(details: Details, uid: str, gid: str, capabilities: str, *namespace: str) -> None:
    details.credentials = Credentials(
        int(uid), int(gid), int(capabilities, 16), any(map(int, namespace))
    )


_DETAILS: Mapping[str, Callable[..., None]] = {
    "file": lambda to, fd, path: to.files.append(File(int(fd), os.fsdecode(_bytes(path)))),
    "memory": lambda to, address, wanted, data: to.add_memory(
        Memory(int(address, 16), int(wanted), _bytes(data))
    ),
    "rights": lambda to, address, rights: to.rights.update({int(address, 16): rights}),
    "credentials": _credentials,
    "enable": lambda to, system, errno: to.enabled.append(Enabled(system, int(errno))),
    # As the model holds names: one character for each byte.
    "event": lambda to, system, number, name: to.events.append(
        Event(system, int(number), _bytes(name).decode("latin-1"))
    ),
    "perf": lambda to, *numbers: to.attached.append(Attached(*map(int, numbers))),
    "page": lambda to, cpu, data: to.pages.append(Page(int(cpu), _bytes(data))),
    "sample": lambda to, cpu, kind, data: to.samples.append(
        Sample(int(cpu), int(kind), _bytes(data))
    ),
}
