"""Allocations of user_events and what frees them, as the kernel's own kmem events record them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from conformance.ops.calls import FILE_LIMIT, Call, path_in, sys_call
from conformance.ops.operation import Operation, Reply

# include/trace/events/kmem.h
_EVENTS = ("kmalloc", "kmem_cache_alloc", "kfree", "kmem_cache_free")
_RECORD = re.compile(
    rb": (kmalloc|kmem_cache_alloc|kfree|kmem_cache_free): call_site=([^+ ]+)\S* .*?ptr=(\w+)"
)
# Functions of trace_events_user.c, and those that allocate strings for it.
_OURS = re.compile(
    rb"user_|current_user_|insert_space_|argv_split|kstrdup|kv?asprintf|strndup_user"
)
# kernel/trace/trace.c: entries are lost, or the buffer was overwritten.
_LOST = re.compile(rb"LOST \d+ EVENTS|entries-in-buffer/entries-written: (\d+)/(?!\1 )")
NOTHING_RECORDED = b"no allocation was recorded\n"
RECORDS_LOST = b"records were lost\n"


class RecordAllocations(Operation, frozen=True):
    """Make an instance of tracefs at ``path``, which records allocations from now on."""

    path: str
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        events = ",".join(_EVENTS)
        return f"mkdir {self.path}; echo 1 > {self.path}/events/kmem/{{{events}}}/enable"

    def calls(self) -> list[Call]:
        return [sys_call("mkdir", path_in(self.path), 0o755), *_switched(self.path, b"1")]


class Unfreed(Operation, frozen=True):
    """Read which allocations of user_events are not freed since ``RecordAllocations``.

    The data has a line for each function, with the number of its allocations.  The ``last`` time
    it must be empty, and the instance is removed.  Memory that kfree_rcu() frees seems to stay: no
    event shows it.
    """

    path: str
    last: bool = False
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        return f"cat {self.path}/trace" + (f"; rmdir {self.path}" if self.last else "")

    def calls(self) -> list[Call]:
        read: list[Call] = [["slurp", f"{self.path}/trace", FILE_LIMIT]]
        end = [*_switched(self.path, b"0"), sys_call("rmdir", path_in(self.path))]
        return [*read, *end] if self.last else read

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        return 0, unfreed(replies[0].data or b"")


def unfreed(text: bytes) -> bytes:
    """The functions whose allocations a trace shows, but not that they are freed."""
    if _LOST.search(text):
        return RECORDS_LOST
    alive: dict[bytes, bytes] = {}
    ours = 0
    for event, function, pointer in _RECORD.findall(text):
        if event.startswith(b"kmem_cache_f") or event == b"kfree":
            alive.pop(pointer, None)
        elif _OURS.match(function):
            ours += 1
            alive[pointer] = function
    return _lines(alive.values()) if ours else NOTHING_RECORDED


def _lines(functions: Iterable[bytes]) -> bytes:
    counted = sorted(Counter(functions).items())
    return b"".join(b"%s %d\n" % (function, number) for function, number in counted)


def _switched(path: str, value: bytes) -> list[Call]:
    return [
        ["spill", f"{path}/events/kmem/{event}/enable", value.hex(), os.O_WRONLY]
        for event in _EVENTS
    ]
