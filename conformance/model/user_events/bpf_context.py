"""struct user_bpf_context, the context of BPF programs attached to a user event.

Source: trace_events_user.c:user_event_bpf, user_event_perf as they were in the merge window of
5.18; lib/iov_iter.c:iterate_iovec, which consumes the write index.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from msgspec import Struct, field

from conformance.abi.uapi import (
    USER_BPF_CONTEXT,
    USER_BPF_DATA_ITER,
    USER_BPF_DATA_KERNEL,
    USER_BPF_DATA_USER,
    USER_BPF_ITER,
)
from conformance.model.errors import NotModelled
from conformance.model.memory import pages
from conformance.model.memory.pages import PAGE_SIZE
from conformance.model.state.events import Event
from conformance.model.state.process import Process
from conformance.model.state.world import World

Segment = tuple[int, int]

# A payload in several segments, or in none, is copied up to this size.
MAX_BPF_COPY_SIZE = PAGE_SIZE
# Stand-ins for kernel addresses, which a case must not compare.
_DATA = 0xFFFF_8880_0100_0000
_ITERATOR = 0xFFFF_8880_0200_0000
_VECTOR = 0xFFFF_8880_0300_0000


class IovIter(Struct, frozen=True):
    """struct iov_iter: the remaining segments, and how much of the first was consumed.

    A segment is (address, bytes); empty segments count.
    """

    segments: tuple[Segment, ...]
    offset: int

    @classmethod
    def after(cls, consumed: int, segments: Sequence[Segment]) -> IovIter:
        """The iterator after the first ``consumed`` bytes.

        The iterator leaves a segment as soon as it is used up, and does not skip empty ones.
        """
        while consumed and consumed >= segments[0][1]:
            consumed -= segments[0][1]
            segments = segments[1:]
        return cls(tuple(segments), consumed)


class Context(Struct, frozen=True):
    """The structure, and the kernel memory that it points to, by address."""

    raw: bytes
    kernel: dict[int, bytes] = field(default_factory=dict)

    def read(self, address: int, length: int) -> bytes:
        """Read kernel memory.  Raises NotModelled outside of it."""
        for start, content in self.kernel.items():
            if start <= address and address + length <= start + len(content):
                return content[address - start :][:length]
        raise NotModelled("kernel memory outside of the context of a program")


def run_programs(
    world: World,
    process: Process,
    event: Event,
    segments: Sequence[Segment],
    consumed: int,
    payload: bytes,
) -> None:
    """user_event_bpf(): run the programs for one write; their return values are ignored.

    The first ``consumed`` bytes of the segments are the write index, ``payload`` is the rest.
    """
    if not world.profile.has("bpf_programs_run"):
        return
    run_attached(world, process, event, build_context(event, segments, consumed, payload))


def run_attached(world: World, process: Process, event: Event, context: Context) -> None:
    """trace_call_bpf(): programs run for disabled perf events too."""

    def read_memory(address: int, length: int) -> bytes:
        """bpf_probe_read(): user memory of the writer, or kernel memory."""
        if pages.is_user_range(address, length):
            return process.memory.read(address, length)
        return context.read(address, length)

    for listener in world.perf_events:
        if listener.source == event.serial and listener.program is not None:
            listener.program.run(context.raw, read_memory)


def build_context(
    event: Event, segments: Sequence[Segment], consumed: int, payload: bytes
) -> Context:
    """The context of a write that begins with ``consumed`` bytes of write index."""
    parts = IovIter.after(consumed, segments)
    if event.bpf_iter:
        return _iterator(parts, len(payload))
    if len(parts.segments) == 1:
        address = parts.segments[0][0] + parts.offset
        return Context(_packed(USER_BPF_DATA_USER, len(payload), address))
    copied = payload[:MAX_BPF_COPY_SIZE]
    return Context(_packed(USER_BPF_DATA_KERNEL, len(copied), _DATA), {_DATA: copied})


def _iterator(parts: IovIter, length: int) -> Context:
    iterator = USER_BPF_ITER.pack(
        {"iov_offset": parts.offset, "nr_segs": len(parts.segments), "iov": _VECTOR}
    )
    vector = b"".join(struct.pack("<QQ", *each) for each in parts.segments)
    raw = _packed(USER_BPF_DATA_ITER, length, _ITERATOR)
    return Context(raw, {_ITERATOR: iterator, _VECTOR: vector})


def _packed(data_type: int, length: int, address: int) -> bytes:
    return USER_BPF_CONTEXT.pack({"data_type": data_type, "data_len": length, "data": address})
