"""The native engine in an actor on the host."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.ops.calls import Call, buffer, bytes_in, fd, sys_call
from tests.vm.actors import GETPID, ROOT, SECONDS, Host, opening, page_of, plain
from vm import wire
from vm.agent import encoding
from vm.guest import LIBRARY
from vm.guest.version import native_version


def test_library_has_the_checksum_of_its_sources() -> None:
    library = ctypes.CDLL(str(ROOT / "vm" / "guest" / LIBRARY))
    assert ctypes.c_uint32.in_dll(library, "engine_version").value == native_version()


def reading(slot: int, size: int) -> Call:
    return sys_call("read", fd(slot), buffer(size), size)


def closing(slot: int) -> Call:
    return sys_call("close", fd(slot))


def test_slot_holds_a_descriptor(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    short, long = reading(5, 4), reading(5, 100)
    results = host.call(opening(file, 5), short, long, long, closing(5), closing(5), closing(6))
    assert plain(results) == [
        (0, 0, None),
        (4, 0, b"cont"),
        (3, 0, b"ent"),
        (0, 0, None),
        (0, 0, None),
        (-1, errno.EBADF, None),
        (-1, errno.EBADF, None),
    ]


def test_failed_call_leaves_its_slot_empty(host: Host) -> None:
    results = host.call(
        opening("/dev/null", 5),
        closing(5),
        # It has the number that slot 5 had.
        opening("/dev/null", 6),
        opening("/missing", 5),
        reading(5, 4),
        closing(6),
    )
    assert [each["errno"] for each in results] == [0, 0, 0, errno.ENOENT, errno.EBADF, 0]


def test_descriptor_through_memory(host: Host) -> None:
    where = page_of(host)
    opened, put, taken, closed, empty, unreadable = host.call(
        opening("/dev/null", 0),
        ["put_fd", where, 0],
        ["take_fd", where, 65535],
        closing(65535),
        ["put_fd", where, 1],
        ["take_fd", 16, 1],
    )
    assert [each["errno"] for each in (opened, put, taken, closed)] == [0] * 4
    assert (empty["errno"], unreadable["errno"]) == (errno.EBADF, errno.EFAULT)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, (1 << 16) + 4097, 3 << 20])
def test_slurp(host: Host, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    path = str(tmp_path / "file")
    results = host.call(["slurp", path, 4 << 20], ["slurp", path, 4096])
    assert plain(results) == [(size, 0, content), (min(size, 4096), 0, content[:4096])]


def test_file_errors(host: Host, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    calls = (
        (["slurp", missing, 10], errno.ENOENT),
        (["slurp", str(tmp_path), 10], errno.EISDIR),
        (["spill", missing, "41", os.O_WRONLY], errno.ENOENT),
        (["spill_pid", "/dev/full", os.O_WRONLY], errno.ENOSPC),
        (["number", missing, 0], errno.ENOENT),
    )
    results = plain(host.call(*(call for call, _ in calls)))
    assert results == [(-1, error, None) for _, error in calls]


def test_spill(host: Host, tmp_path: Path) -> None:
    create = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    path = str(tmp_path / "file")
    results = host.call(
        ["spill", path, b"content ".hex(), create],
        ["spill_pid", path, create],
        ["spill", path, "", create],
    )
    number = str(host.actor.pid)
    assert [each["value"] for each in results] == [8, len(number), 0]
    assert (tmp_path / "file").read_text() == f"content {number}"


@pytest.mark.parametrize(
    ("text", "stored", "held"),
    [
        ("0", (8, 0), 0),
        ("65535\n", (8, 0), 65535),
        (str((1 << 64) - 1), (8, 0), (1 << 64) - 1),
        *((text, (-1, errno.EINVAL), 0) for text in ("", "\n", "-1", "1 2", "0x10", "none")),
    ],
)
def test_only_valid_number_is_stored(
    host: Host, tmp_path: Path, text: str, stored: tuple[int, int], held: int
) -> None:
    (tmp_path / "number").write_text(text)
    where = page_of(host)
    results = host.call(["number", str(tmp_path / "number"), where], ["peek", where, 9])
    content = held.to_bytes(9, "little")
    assert plain(results) == [(*stored, None), (9, 0, content)]


def test_list_and_status(host: Host, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir(mode=0o700)
    for name in ("a b", "n" * 255):
        (tmp_path / "directory" / name).touch()
    path = str(tmp_path / "directory")
    names, missing, file, mode, none = plain(
        host.call(
            ["list", path],
            ["list", f"{path}/missing"],
            ["list", f"{path}/a b"],
            ["status", path],
            ["status", f"{path}/missing"],
        )
    )
    assert sorted((names[2] or b"").split(b"\n")) == [b"", b"a b", b"n" * 255]
    assert missing[1] == none[1] == errno.ENOENT
    assert file[1] == errno.ENOTDIR
    assert mode[2] == f"40700 {os.getuid()}:{os.getgid()}".encode()


def test_calls_in_python_keep_their_order(host: Host) -> None:
    pid, ended, again = host.call(GETPID, ["end_tasks"], GETPID)
    assert pid == again
    assert plain([ended]) == [(0, 0, None)]


def test_unknown_call_is_refused(host: Host) -> None:
    for call in (["nothing"], ["end_tasks", 1], ["via", "a/1", ["tid"]], ["race", []]):
        host.end.sendall(host.request(GETPID, call, ["exit", 1]))
        assert "error" in wire.unpack(host.receive())
    assert host.call(GETPID)[0]["value"] == host.actor.pid


def test_oversized_reply_is_refused(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(5 << 20))
    call = ["slurp", str(tmp_path / "file"), 8 << 20]
    host.end.sendall(host.request(call, call))
    assert "exceeds" in str(wire.unpack(host.receive())["error"])
    assert host.call(call)[0]["value"] == 5 << 20


def test_requests_survive_any_split(host: Host) -> None:
    large = ["poke", page_of(host, 1 << 20), bytes(range(256)).hex() * 4000]
    stream = host.request(large) + host.request(GETPID) + host.request(large)
    pieces = [1, 3, 4, 11, 12, 13, 70_000, len(stream) - 5, len(stream)]
    for start, end in zip([0, *pieces], pieces, strict=False):
        host.end.sendall(stream[start:end])
    values = [each["value"] for _ in range(3) for each in host.answer()]
    assert values == [1_024_000, host.actor.pid, 1_024_000]


def _short(*calls: Call, watch: Sequence[Any] = ()) -> bytes:
    """A request without its last bytes."""
    return wire.frame(encoding.request(1, calls, watch)[:-8])


@pytest.mark.parametrize(
    ("stream", "part"),
    [
        (b"x", "magic"),
        (b"UEV2", "magic"),
        (b"UEV1\x7f\xff\xff\xff\0\0\0\0", "length"),
        (wire.frame(encoding.request(1, [], []))[:-1] + b"x", "checksum"),
        (wire.frame(b"null"), "payload"),
        (_short(GETPID), "payload"),
        (_short(["peek", 0, 0]), "payload"),
        (_short(sys_call("close", bytes_in(b"A"))), "payload"),
        (_short(["spill", "/x", "41", 0]), "payload"),
        (_short(watch=[[1, 2, 3]]), "payload"),
        (wire.frame(encoding.request(0, [], [])), "order"),
        (wire.frame(encoding.request(2, [], [])) * 2, "order"),
    ],
)
def test_malformed_request_ends_the_actor(host: Host, stream: bytes, part: str) -> None:
    host.end.sendall(stream)
    assert f"frame {part}" in host.actor.communicate(timeout=SECONDS)[1]


def test_actor_ends_with_its_host(host: Host) -> None:
    assert host.close() == ""
    assert host.actor.returncode == 7
