"""Calls in a real guest."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from host.deadline import Deadline
from tests.vm.conftest import healthy
from vm.errors import ActorDied, NoAnswer
from vm.machine import Machine

pytestmark = pytest.mark.kernel

AT_FDCWD = -100
READ, OPENAT, MMAP, PAUSE, GETPID, EXIT_GROUP, SETRESUID = 0, 257, 9, 34, 39, 231, 117
# int $0x80
FUTEX_32, FUTEX_WAKE_PRIVATE = 240, 129


def _memory(machine: Machine, actor: str = "a") -> int:
    (result,) = machine.call(actor, [["sys", MMAP, [0, 4096, 3, 0x22, -1, 0], None]])
    return int(result["value"])


def _seconds(machine: Machine, actor: str, call: list[Any]) -> float:
    began = time.perf_counter()
    machine.call(actor, [call])
    return time.perf_counter() - began


def test_unprivileged_actor_cannot_read_others(machine: Machine) -> None:
    """An unprivileged actor may not read; the supervisor does so after the last call."""
    mine, other = _memory(machine, "a"), _memory(machine, "b")
    machine.call("b", [["poke", other, "bb"]])
    machine.call("a", [["sys", SETRESUID, [1000, 1000, 1000], None]])
    watch = [["a", mine, 1], ["b", other, 1]]
    first, last = machine.call("a", [["poke", mine, "11"], ["poke", mine, "22"]], watch)
    assert first["watch"] == ["11", "-"]
    assert last["watch"] == ["22", "bb"]


def test_fork_copies_memory_and_slots(machine: Machine) -> None:
    where = _memory(machine)
    path = {"in": b"/proc/self/stat\0".hex()}
    machine.call("a", [["poke", where, "aa"], ["sys", OPENAT, [AT_FDCWD, path, 0, 0], 1]])
    (forked,) = machine.call("a", [["fork", "child"]])
    pid, child = machine.call("child", [["sys", GETPID, [], None], ["poke", where, "cc"]])
    assert pid["value"] == forked["value"]
    assert child["errno"] == 0
    (seen,) = machine.call("", [["ping"]], [["a", where, 1], ["child", where, 1]])
    assert seen["watch"] == ["aa", "cc"]
    (read,) = machine.call("child", [["sys", READ, [{"fd": 1}, {"out": 8}, 8], None]])
    assert read["value"] == 8


def test_child_outlives_parent_and_forks_without_privilege(machine: Machine) -> None:
    machine.call("a", [["sys", SETRESUID, [65534, 65534, 65534], None], ["fork", "c"]])
    machine.call("a", [["exit", 0]])
    assert machine.call("c", [["fork", "d"]])[0]["errno"] == 0
    assert machine.call("d", [["sys", 107, [], None]])[0]["value"] == 65534


def test_actor_ends_in_a_call(machine: Machine) -> None:
    with pytest.raises(ActorDied, match="with exit status 7"):
        machine.call("a", [["sys", EXIT_GROUP, [7], None]])
    assert healthy(machine)
    machine.call("", [["spawn", "a"]])


def test_blocked_actor_blocks_no_other(machine: Machine) -> None:
    with pytest.raises(NoAnswer, match="no end of pause within"):
        machine.call("a", [["sys", PAUSE, [], None]], deadline=Deadline(0.3, "end of pause"))
    assert healthy(machine)
    assert machine.call("b", [["sys", GETPID, [], None]])[0]["errno"] == 0
    assert machine.call("", [["kill", "a", 9]])[0]["value"] == 9


def test_a_megabyte_each_way(machine: Machine) -> None:
    content = os.urandom(1 << 20).hex()
    machine.call("a", [["spill", "/tmp/large", content, os.O_WRONLY | os.O_CREAT]])
    (slurped,) = machine.call("a", [["slurp", "/tmp/large", 1 << 20]])
    assert slurped["data"] == content


def test_call_needs_no_process_switch(machine: Machine) -> None:
    """A call through the supervisor took five times as long as a ping."""
    # Alternate, so that a busy host slows both, and compare the tenth best.
    pairs = [
        (_seconds(machine, "", ["ping"]), _seconds(machine, "a", ["sys", GETPID, [], None]))
        for _ in range(300)
    ]
    ping, call = (sorted(times)[10] for times in zip(*pairs, strict=True))
    assert call < 3 * ping


def test_32_bit_program_has_futexes(machine: Machine) -> None:
    """CONFIG_COMPAT_32BIT_TIME: glibc aborts at ENOSYS."""
    wake = ["int80", FUTEX_32, [4096, FUTEX_WAKE_PRIVATE, 1], None]
    _, woken = machine.call("a", [["task", "t", None, 0], ["via", "t", wake]])
    assert (woken["errno"], woken["value"]) == (0, 0)
