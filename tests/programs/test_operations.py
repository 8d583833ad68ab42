"""From recorded system calls to operations, and what is not judged."""

from __future__ import annotations

import os

import pytest

from conformance import ops
from conformance.ops import compat
from conformance.programs.calls import Descriptors, NotJudged, tracefs_path, was_restarted
from conformance.programs.operations import observation, operations_of
from vm.recorder.recording import Call, Details, File, Memory

DATA = "/sys/kernel/tracing/user_events_data"
KNOWN = Descriptors({3: DATA, 5: DATA}, {4})
REGISTER = 0xC0082A00
READ_8 = Memory(0x1000, 8, bytes(8))


def call(
    number: int,
    *arguments: int,
    result: int = 0,
    fd: int | None = 3,
    path: str = DATA,
    compat_: bool = False,
) -> Call:
    """A call with a descriptor in its first argument."""
    padded = (*arguments, *(0 for _ in range(6 - len(arguments))))
    details = Details(files=[] if fd is None else [File(fd, path)], memory=[READ_8])
    return Call(7, 7, number, compat_, padded, result, details)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call(16, 3, REGISTER, 0x1000), [ops.Ioctl("p1", 3, REGISTER, 0x1000)]),
        # The kernel takes 32 bits of descriptor and request.
        (call(16, 3 + (1 << 32), REGISTER, 1), [ops.Ioctl("p1", 3, REGISTER, 1)]),
        (call(16, 3, REGISTER, 0x1000, compat_=True), [compat.Ioctl32("p1", 3, REGISTER, 0x1000)]),
        (call(1, 3, 0x1000, 8), [ops.Write("p1", 3, 0x1000, 8)]),
        (call(18, 3, 0x1000, 8, (1 << 64) - 1), [ops.Pwrite("p1", 3, 0x1000, 8, -1)]),
        (call(20, 3, 0x1000, 2), [ops.Writev("p1", 3, 0x1000, 2)]),
        (call(296, 3, 0x1000, 2, 4), [ops.Pwritev("p1", 3, 0x1000, 2, 4)]),
        (call(328, 3, 0x1000, 2, (1 << 64) - 1), [ops.Writev("p1", 3, 0x1000, 2)]),
        (call(3, 3), [ops.Close("p1", 3)]),
        (call(32, 3, result=9), [ops.Dup("p1", 3, 9)]),
        (call(33, 3, 5, result=5), [ops.Close("p1", 5), ops.Dup("p1", 3, 5)]),
        (call(33, 3, 3, result=3), []),
        # Another file takes the place of a descriptor.
        (call(33, 1, 5, result=5, fd=None), [ops.Close("p1", 5)]),
        (call(33, 1, 5, result=5, fd=1, path="/dev/null"), [ops.Close("p1", 5)]),
        (call(72, 3, 1030, 0, result=9), [ops.Dup("p1", 3, 9)]),
        (call(72, 3, 2, 1), []),
        (call(436, 4, 0xFFFFFFFF, fd=None), [ops.Close("p1", 5)]),
        (call(436, 0, 0xFFFFFFFF, 4, fd=None), []),
        (call(436, 4, 9, 2, fd=None), [ops.Close("p1", 5)]),
        (call(8, 3, 1, 2), [ops.Lseek("p1", 3, 1, 2)]),
        (call(1, 4, 0x1000, 8, result=-9, fd=None), [ops.Write("p1", 4, 0x1000, 8)]),
        # Never a file of tracefs.
        (call(1, 8, 0x1000, 8, result=-9, fd=None), []),
    ],
)
def test_a_call_is_told_as_operations(made: Call, expected: list[ops.Operation]) -> None:
    assert operations_of(made, "p1", KNOWN) == expected


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (call(16, 6, REGISTER, 0x1000, fd=6), "ioctl on a descriptor of unknown origin"),
        (call(16, 3, 0x5401), "ioctl 0x5401"),
        (call(1, 3, 0x1000, 1 << 30), "more than are recorded"),
        (call(328, 3, 0x1000, 1, (1 << 64) - 1, 0, 8), "pwritev2 with flags 0x8"),
        (call(328, 3, 0x1000, 1, 0, 0, 2), "pwritev2 with flags 0x2"),
        (call(40, 3, 1), "sendfile of user_events_data"),
        (call(0, 3, 0x1000, 8, path="/sys/kernel/tracing/trace"), "read on a descriptor"),
    ],
)
def test_what_is_not_judged_says_why(made: Call, reason: str) -> None:
    with pytest.raises(NotJudged, match=reason):
        operations_of(made, "p1", KNOWN)


def opened(number: int, path: bytes, *arguments: int, result: int) -> Call:
    """A call of the open(2) family."""
    padded = (*arguments, *(0 for _ in range(6 - len(arguments))))
    before = Details(memory=[Memory(0x2000, len(path) + 1, path + b"\0")])
    after = Details(files=[File(result, os.fsdecode(path))] if result >= 0 else [])
    return Call(7, 7, number, False, padded, result, before, after)


def test_the_opened_file_and_not_its_spelling_counts() -> None:
    made = opened(257, b"user_events_data", 0, 0x2000, os.O_RDWR | os.O_CLOEXEC, result=3)
    made.after.files = [File(3, "/sys/kernel/debug/tracing/user_events_data")]
    assert operations_of(made, "p1", KNOWN) == [ops.Open("p1", 3, DATA, os.O_RDWR)]
    refused = opened(2, DATA.encode(), 0x2000, os.O_RDONLY, result=-13)
    assert operations_of(refused, "p1", KNOWN) == [ops.Open("p1", -1, DATA, os.O_RDONLY)]
    assert operations_of(opened(2, b"tracing/x", 0x2000, 0, result=-2), "p1", KNOWN) == []


@pytest.mark.parametrize("name", ["O_PATH", "O_DIRECTORY", "O_EXCL", "O_DIRECT"])
def test_other_kinds_of_open_are_not_judged(name: str) -> None:
    made = opened(257, DATA.encode(), 0, 0x2000, os.O_RDWR | getattr(os, name), result=3)
    with pytest.raises(NotJudged, match=f"openat with {name}$"):
        operations_of(made, "p1", KNOWN)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/sys/kernel/debug/tracing/user_events_status", "/sys/kernel/tracing/user_events_status"),
        ("/mnt/t/user_events_data", DATA),
        ("/mnt/t/trace", "/mnt/t/trace"),
    ],
)
def test_paths_of_other_mounts(path: str, expected: str) -> None:
    assert tracefs_path(path) == expected


def test_observations_hold_no_descriptor_numbers() -> None:
    made = call(32, 3, result=9)
    assert observation(made, ops.Dup("p1", 3, 9)) == ops.Observation(0)
    made = call(1, 3, result=-22)
    assert observation(made, ops.Write("p1", 3, 0, 0)) == ops.Observation(-1, "EINVAL")


def test_interrupted_calls_are_repeated() -> None:
    assert was_restarted(call(257, result=-512))
    assert not was_restarted(call(257, result=-4))
