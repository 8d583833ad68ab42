"""Parsers of guest output: frames, replies, consoles, and texts and pages of the kernel."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from conformance import ops
from conformance.abi.profile import profile_for
from conformance.ops import ReadFile, View
from conformance.ops.decoding import file_views, perf_ring, trace_page
from conformance.programs.judge import Judge
from conformance.programs.text import lines_of
from conformance.runner.cleanup import Cleanup
from conformance.runner.guest_executor import GuestExecutor
from conformance.runner.guest_invariants import GuestInvariants
from conformance.runner.guest_setup import GuestSetup
from conformance.runner.patience import Patience
from conformance.runner.process_pool import ProcessPool
from host.deadline import Deadline
from tests import packed
from tests.fuzz.target import Target
from tests.vm.captured import LOGS
from vm import wire
from vm.agent.agent import Agent
from vm.agent.channel import Channel
from vm.agent.encoding import NOT_READ
from vm.errors import VmError
from vm.kernel_log.reports import MAX_FINDINGS, classify, phase
from vm.recorder.recording import BadRecording, groups

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
PORTS = ("uevt0", "uevt1", "uevt2")
RESULT_TYPES: dict[str, Any] = {
    "value": int,
    "errno": int,
    "data": (str, type(None)),
    "watch": list,
}


def guest_targets() -> tuple[Target, ...]:
    """Parsers of guest output."""
    return (
        Target("frames", read_frames, frames, (wire.FrameError,), (wire.MAGIC,)),
        Target("payload", read_payload, payloads, (wire.FrameError,)),
        Target("answers", converse, conversations, (VmError,)),
        Target("console", read_console, consoles, tokens=REPORTS),
        Target("observations", observe, observed, tokens=TEXTS),
        Target("cleanup", tidy, found, tokens=TEXTS),
        Target("perf-ring", read_ring, rings),
        Target("trace-page", read_page, pages),
        Target("tracefs-texts", read_views, texts, tokens=TEXTS),
        Target("recording", judge_recording, recordings, (BadRecording,), RECORDED),
    )


# Programs

RECORDED = (b"call ", b"exit ", b"memory ", b"fork ", b"end ", b"page 0 ", b" 497 ", b"ffffffff")


def recordings() -> Sequence[bytes]:
    """Short recordings of real programs."""
    return [(RECORDINGS / f"{name}.txt").read_bytes() for name in ("bit_31", "passed", "formats")]


def judge_recording(data: bytes) -> None:
    """Decode and judge a recording; whatever it says, there is a verdict."""
    lines = data.decode("latin-1").splitlines(keepends=True)
    list(lines_of(Judge(profile_for("6.12.117")).feed(groups(lines))))


# The channel

MESSAGES: tuple[dict[str, Any], ...] = (
    {"id": 0, "hello": 1},
    {"id": 1, "results": [{"value": 35, "errno": 0, "data": None, "watch": []}]},
    {"id": 0, "ended": 35, "status": 9},
    {"id": 3, "error": "BadCall: no such call"},
)


def frames() -> list[bytes]:
    """Streams of frames."""
    return [b"".join(map(wire.pack, MESSAGES)), wire.pack(MESSAGES[1]), b""]


def read_frames(stream: bytes) -> None:
    """Decode a stream in chunks; every byte is either taken or pending."""
    decoder = wire.Decoder()
    taken = 0
    for start in range(0, len(stream), 4096):
        decoder.feed(stream[start : start + 4096])
        while (payload := decoder.take()) is not None:
            taken += len(wire.frame(payload))
            # A decoded frame is found unchanged in the stream.
            assert wire.frame(payload) == stream[taken - len(wire.frame(payload)) : taken]
            wire.unpack(payload)
    assert taken + decoder.pending == len(stream)


def payloads() -> list[bytes]:
    """Messages."""
    return [json.dumps(message).encode() for message in MESSAGES]


def read_payload(payload: bytes) -> None:
    """Unpack a message, and repack it."""
    message = wire.unpack(payload)
    with suppress(ValueError):  # infinity, which JSON lacks
        assert wire.unpack(wire.pack(message)[wire.HEADER.size :]) == message


REQUESTS: tuple[tuple[str, list[list[Any]]], ...] = (
    ("", [["spawn", "a"]]),
    ("a", [["sys", 39, [], None], ["peek", 4096, 8], ["fork", "b"], ["task", "a/1", None, 0]]),
    ("a", [["via", "a/1", ["exec", ""]], ["slurp", "/x", 10]]),
    ("b", [["sys", 1, [], None]]),
    ("", [["kill", "b", 9]]),
    ("a", [["sys", 1, [], None], ["exit", 3]]),
    ("", [["reset"]]),
)
WATCH = (("a", 4096, 4), ("b", 8192, 2), ("a/1", 0, 1))


def conversations() -> list[bytes]:
    """A line per request of ``REQUESTS``: ports, and the messages that they deliver."""

    def reply(number: int, *values: int, watch: Sequence[Any] = ()) -> str:
        given = [
            {"value": value, "errno": 0, "data": "00ff", "watch": list(watch)} for value in values
        ]
        return packed.encode_reply(number, given).hex()

    mine = ["01020304", NOT_READ, None]
    whole = ["01020304", "0102", "01"]
    replies: list[list[tuple[int, dict[str, Any] | str]]] = [
        [(0, reply(1, 35))],
        [(1, reply(2, 1, 8, 36, 41, watch=mine)), (0, reply(3, 2))],
        [(1, reply(4, 41, 2, watch=whole))],
        [(2, reply(5, 7, watch=whole))],
        [(0, reply(6, 9))],
        [(1, reply(7, 7)), (0, {"id": 0, "ended": 35, "status": 768})],
        [(0, reply(9, 2))],
    ]
    lines = [json.dumps(each).encode() for each in replies]
    return [b"\n".join(lines), b"\n".join(lines[:2])]


def converse(replies: bytes) -> None:
    """Talk to a guest that replies arbitrarily.

    Every result has the form that the layers above rely on.
    """
    pairs = [socket.socketpair() for _ in PORTS]
    agent = Agent([Channel(ours) for ours, _ in pairs], PORTS)
    ends = [theirs for _, theirs in pairs]
    try:
        for (actor, calls), line in zip_longest(REQUESTS, replies.split(b"\n")[: len(REQUESTS)]):
            if line:
                _deliver(ends, line)
            watch = () if actor == "" or calls[-1][0] == "exit" else WATCH
            results = agent.call(actor, calls, watch, Deadline(0, "answer"))
            assert len(results) == len(calls)
            for result in results:
                assert all(isinstance(result[key], kind) for key, kind in RESULT_TYPES.items())
                assert len(result["watch"]) == len(watch)
                for text in (result["data"], *result["watch"]):
                    bytes.fromhex(text if text not in (None, NOT_READ) else "")
    finally:
        agent.close()
        for theirs in ends:
            theirs.close()


def _deliver(ends: Sequence[socket.socket], line: bytes) -> None:
    """Deliver messages on ports; a line that is no list of them is delivered on port 0 unchanged.

    A string among the messages is a payload in hex.
    """
    messages: list[tuple[int, bytes]] = [(0, line)]
    with suppress(ValueError, TypeError, RecursionError):
        decoded = [
            (port, bytes.fromhex(what) if isinstance(what, str) else json.dumps(what).encode())
            for port, what in json.loads(line)
        ]
        messages = [(port if port in (1, 2) else 0, payload) for port, payload in decoded]
    for port, payload in messages:
        ends[port].setblocking(False)
        with suppress(BlockingIOError):  # the socket is full
            ends[port].send(wire.frame(payload))


# The console

REPORTS = (
    *(b"Kernel panic - not syncing: ", b"end ", b"BUG: ", b"WARNING: ", b"INFO: ", b"rcu: INFO: "),
    *(b"Oops: ", b"UBSAN: ", b"[    1.000000] ", b"uevt-mark 1 x", b"detected stall", b" at "),
    *(b"BUG kmalloc-64 (Tainted: ", b"-safe -> ", b"blocked for more than ", b"key "),
)


def consoles() -> list[bytes]:
    """Captured consoles."""
    return [file.read_bytes()[-20_000:] for file in sorted(LOGS.glob("*.log"))]


def read_console(replies: bytes) -> None:
    """Classify a console; reports are lines of the text, in order."""
    text = replies.decode("utf-8", "replace")
    found = classify(text)
    phase(text)
    # A torn line can hold several.
    assert [each.line for each in found] == sorted(each.line for each in found)
    assert len(found) <= MAX_FINDINGS
    assert all(each.fingerprint.isprintable() for each in found)
    assert all("\n" not in each.text for each in found)


# Kernel texts and pages

TEXTS = (
    *(b"u:t00001_a u32 b\n", b"ue:a;u32 b (Used by ftrace)\n", b" # Used by perf\n", b"e:a/b c.d"),
    *(b"p:kprobes/x y\n", b"* Snapshot is freed *", b":unlimited", b" [active]", b"00000000: "),
    *(b"python-71 [000] ..... 1.000001: t00001_e: a=1\n", b"field:char a[7];\toffset:8;", b"ID: 1"),
)
LYING = (
    *(ReadFile("a", "/f", view, "t00001_", (4, 0)) for view in View),
    ops.ReadRing("a", 4096, 8192, 0x402),
    ops.Read("a", 3, 100),
    ops.Stat("a", "/f"),
    ops.ReadPipe("a", 3, 100, (4,)),
    ops.ReadPage("a", 3, "/id", (4,)),
    ops.Ownership("a", "/f"),
    ops.Getdents("a", 3, "t"),
)


class Answering:
    """A channel that returns the same bytes for every request."""

    def __init__(self, data: bytes) -> None:
        self._result = {"value": len(data), "errno": 0, "data": data.hex()}

    def call(
        self, actor: str, calls: Sequence[Any], watch: Sequence[Any] = ()
    ) -> list[dict[str, Any]]:
        return [{**self._result, "watch": [None] * len(watch)} for _ in calls]

    def deadline(self, seconds: float, what: str) -> Deadline:
        return Deadline(0, what)

    def pause(self, deadline: Any) -> None:
        return None


def observed() -> list[bytes]:
    """Data that some operation expects."""
    return [*texts(), *rings()[:1], *pages()[:1], struct.pack("<QQHB", 1, 2, 24, 4) + b"a\0\0\0\0"]


def observe(data: bytes) -> None:
    """Decode the same data for each operation."""
    channel = Answering(data)
    executor = GuestExecutor(channel, ProcessPool(channel, standing="root"), Patience())
    executor.execute([ops.Spawn("a")], ())
    seen = executor.execute(LYING, (ops.Watch("a", 4096, 4),))
    assert len(seen) == len(LYING)


def found() -> list[bytes]:
    """Files that the cleanup reads."""
    return [b"", b"0\n", b"1:t00001_a # Used by ftrace\n", *TEXTS]


def tidy(data: bytes) -> None:
    """Derive cleanup calls from arbitrary file contents."""
    # All files have the same text, so each line of one leads to the lines of others.
    guest = Answering(data[:2000])
    setup = GuestSetup(guest)
    setup.next_multi_id()
    setup.has_user_events()
    Cleanup(guest, GuestInvariants(guest), Patience()).tidy()


def rings() -> list[bytes]:
    """Mappings of a perf ring of one page."""
    raw = b"\x05\0\0\0\x05\0\0\0" + b"\x0c\0\0\0" + bytes(8) + b"abcd"
    records = struct.pack("<IHH", 9, 1, 8 + len(raw)) + raw
    records += struct.pack("<IHHQQ", 2, 0, 24, 77, 3)
    first = bytearray(4096)
    first[1024:1040] = struct.pack("<QQ", len(records), 0)
    whole = bytes(first) + records.ljust(4096, b"\0")
    return [whole, whole[:4096], whole[1000:1100]]


def read_ring(mapping: bytes) -> None:
    """Print a ring, for several sample types."""
    for sample_type in (0, 0x402, 0x502, (1 << 64) - 1):
        assert perf_ring.describe(mapping, sample_type).endswith("\n")


def pages() -> list[bytes]:
    """Pages of trace_pipe_raw."""
    event = struct.pack("<I", 3) + struct.pack("<HBBi", 400, 0, 0, 77) + b"abcd"
    extend = struct.pack("<II", 30, 1)
    data = extend + event + event
    whole = (struct.pack("<QQ", 12345, len(data)) + data).ljust(4096, b"\0")
    return [whole, whole[:16], whole[:3]]


def read_page(raw: bytes) -> None:
    """Print a page, for several expected sizes."""
    for sizes in ((), (4, 4), (0, 4000)):
        assert trace_page.describe(raw, 400, 77, sizes).endswith("\n")


def texts() -> list[bytes]:
    """tracefs files."""
    status = b"t00001_a # Used by ftrace perf\n\nActive: 1\nBusy: 1\n"
    format_ = b"name: t00001_e\nID: 12\nformat:\n\tfield:char a[7];\toffset:8;\tsize:7;\n"
    dump = b" " * 9 + b"python-71      [000] .....     3.181713: t00001_e:\n00000000: 01 02\n"
    counts = b"entries: 3\noverrun: 0\n"
    return [status, format_, dump, counts, *TEXTS]


def read_views(data: bytes) -> None:
    """Parse any bytes in every view."""
    for view in View:
        file_views.read(view, data, "t00001_", (4, 0))
