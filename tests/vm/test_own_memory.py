"""Access to an actor's own memory honours its protections."""

from __future__ import annotations

import errno
import mmap
import os
import signal
import subprocess
from pathlib import Path

import pytest

from conformance.ops.calls import fd, sys_call
from tests.vm.actors import GETPID, SECONDS, Host, opening, page_of, plain


def test_access_honours_protections(host: Host) -> None:
    where = page_of(host, 2 * mmap.PAGESIZE)
    edge = where + mmap.PAGESIZE
    (protected,) = host.call(sys_call("mprotect", edge, mmap.PAGESIZE, mmap.PROT_READ))
    assert protected["errno"] == 0
    refused = (-1, errno.EFAULT, None)
    calls = (
        (["poke", edge - 4, "01020304"], (4, 0, None)),
        (["peek", edge - 2, 4], (4, 0, b"\3\4\0\0")),
        (["poke", edge - 2, "05060708"], refused),
        (["peek", 16, 4], refused),
        (["poke", 16, "00"], refused),
        (["peek", 16, 0], (0, 0, b"")),
    )
    results = plain(host.call(*(call for call, _ in calls)))
    assert results == [expected for _, expected in calls]


def test_mapping_beyond_the_end_of_its_file(host: Host, tmp_path: Path) -> None:
    """It raises SIGBUS, other missing memory SIGSEGV."""
    (tmp_path / "file").write_bytes(b"")
    shared = sys_call("mmap", 0, mmap.PAGESIZE, 3, mmap.MAP_SHARED, fd(1), 0)
    opened, mapped = host.call(opening(tmp_path / "file", 1, os.O_RDWR), shared)
    assert opened["errno"] == mapped["errno"] == 0
    where = mapped["value"]
    read, written = host.call(
        ["peek", where, 1], ["poke", where, "00"], watch=[[host.actor.pid, where, 1]]
    )
    assert read["errno"] == written["errno"] == errno.EFAULT
    assert read["watch"] == written["watch"] == [None]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS])
def test_other_faults_kill_the_actor(host: Host, number: signal.Signals) -> None:
    host.call(["peek", page_of(host), 1])
    host.actor.send_signal(number)
    assert host.actor.wait(SECONDS) == -number


def test_watched_memory_is_read_after_each_call(host: Host) -> None:
    where = page_of(host, 2 * mmap.PAGESIZE)
    edge = where + mmap.PAGESIZE
    watch = [[host.actor.pid, where, 2], [host.actor.pid, edge - 1, 3]]
    before, unseen, after = host.call(
        GETPID,
        ["unseen", ["poke", where, "ffff"]],
        ["poke", edge, "eeee"],
        watch=watch,
    )
    assert before["watch"] == ["0000", "000000"]
    assert unseen["watch"] == ["-", "-"]
    assert after["watch"] == ["ffff", "00eeee"]


def test_unreadable_place_does_not_affect_others(host: Host) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        where = page_of(host)
        watch = [
            [host.actor.pid, where, 1],
            [host.actor.pid, 16, 1],
            [other.pid, where + (1 << 46), 4],
            [0, where, 1],
            [host.actor.pid, where + mmap.PAGESIZE - 1, 1],
        ]
        (seen,) = host.call(["poke", where, "aa"], watch=watch)
        other.kill()
    assert seen["watch"] == ["aa", None, None, "gone", "00"]


def test_many_places_are_watched(host: Host) -> None:
    """More than IOV_MAX, the limit of one system call."""
    where = page_of(host)
    watch = [[host.actor.pid, where + n, 1] for n in range(1500)]
    (seen,) = host.call(["poke", where + 1499, "99"], watch=watch)
    assert seen["watch"] == ["00"] * 1499 + ["99"]
