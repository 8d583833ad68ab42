"""Prepare a guest for its cases, and ask its kernel what the model cannot know.

Calls are generic and outside of every case: the model never sees them.
"""

from __future__ import annotations

import os
import re
from errno import ENOENT
from signal import SIGKILL

from conformance.abi import uapi
from conformance.client import tracefs
from conformance.ops.calls import AT_FDCWD, Call, Request, fd, path_in, sys_call
from conformance.runner.guest import Channel

#: The process that reads and writes the files of tracefs, for the harness and for cases.
ACTOR = "root"
#: A page of ``ACTOR`` that the harness may write, and the slot of its user_events_data.
MEMORY = 0x2000_0000_0000
DATA_SLOT = 3
#: Longest file that is read whole, in bytes.
LIMIT = 1 << 20

# The text section comes first.
_SYMBOLS, _SYMBOLS_LIMIT = "/proc/kallsyms", 4 << 20
_FUNCTION = " user_events_ioctl\n"
# A name as those of programs: the views of later programs leave it out while it lingers.
_GAUGE = "t00000_gauge"
_PAGE = 4096
# PROT_READ | PROT_WRITE; MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE.
_READ_WRITE, _FIXED = 3, 0x100022
# The configuration or the command line of the kernel decides what ordinary users may do with
# perf and bpf(2); cases expect 2.  A kernel without perf or BPF has no such file.
_SYSCTLS = (
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
)


def write_file(path: str, text: str, flags: int = 0) -> Call:
    """Open a file for writing, with more ``flags``, and write a text."""
    return ["spill", path, text.encode("latin-1").hex(), os.O_WRONLY | flags]


def text_of(result: dict[str, object]) -> str:
    """The bytes that a call read, as text."""
    return bytes.fromhex(str(result["data"] or "")).decode("latin-1")


class GuestSetup:
    """Set up a new guest.  Raises what the channel raises."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        for actor, calls in _SETUP:
            channel.call(actor, calls)

    def has_user_events(self) -> bool:
        """Whether this kernel has a file of user_events.

        A file that exists and cannot be read is a bug of the kernel, which the cases report.
        """
        actor, calls = _WHETHER_BUILT
        return any(result["errno"] != ENOENT for result in self._channel.call(actor, calls))

    def has_symbols(self) -> bool | None:
        """Whether the kernel has functions of user_events; None if it does not show its symbols."""
        (result,) = self._channel.call(ACTOR, [["slurp", _SYMBOLS, _SYMBOLS_LIMIT]])
        return _FUNCTION in text_of(result) if result["data"] else None

    def load_module(self, image: bytes) -> int:
        """Load a kernel module from the content of its file; errno, or 0."""
        text = {"in": b"\0".hex()}
        call = sys_call("init_module", {"in": image.hex()}, len(image), text)
        (result,) = self._channel.call(ACTOR, [call])
        return int(result["errno"])

    def next_multi_id(self) -> int:
        """The number the next multi-format event will get, found by registering one.

        The counter is system-wide and moves with every attempt
        (trace_events_user.c:user_event_set_tp_name).
        """
        name = MEMORY + 256
        reg = uapi.USER_REG.pack(
            {
                "size": uapi.USER_REG.size,
                "enable_size": 4,
                "flags": uapi.USER_EVENT_REG_MULTI_FORMAT,
                "enable_addr": MEMORY + 512,
                "name_args": name,
            }
        )
        self._channel.call("", [["spawn", _GAUGE]])
        results = self._channel.call(
            _GAUGE,
            [
                _map_page(),
                ["poke", MEMORY, reg.hex()],
                ["poke", name, (_GAUGE.encode() + b"\0").hex()],
                _open_data(),
                sys_call("ioctl", fd(DATA_SLOT), uapi.DIAG_IOCSREG, MEMORY),
                ["slurp", tracefs.STATUS, LIMIT],
            ],
        )
        self._channel.call("", [["kill", _GAUGE, SIGKILL]])
        found = re.search(rf"^{_GAUGE}\.([0-9a-f]+)$", text_of(results[-1]), re.MULTILINE)
        # A kernel that cannot register the event fails the cases about multi-format events.
        return int(found[1], 16) + 1 if found else 0


def _map_page() -> Call:
    return sys_call("mmap", MEMORY, _PAGE, _READ_WRITE, _FIXED, -1, 0)


def _open_data() -> Call:
    # Read-only: a descriptor open for writing keeps tracefs from being remounted read-only.
    return sys_call("openat", AT_FDCWD, path_in(tracefs.DATA), os.O_RDONLY, 0, slot=DATA_SLOT)


_SETUP: tuple[Request, ...] = (
    ("", (["spawn", ACTOR],)),
    (ACTOR, (_map_page(), _open_data(), *(write_file(path, "2") for path in _SYSCTLS))),
)
_WHETHER_BUILT: Request = (
    ACTOR,
    tuple(["slurp", path, LIMIT] for path in (tracefs.STATUS, tracefs.DATA)),
)
#: The requests of ``GuestSetup`` and ``has_user_events``, in this order.
OPENING = (*_SETUP, _WHETHER_BUILT)
