"""Programs of the host, run by an actor of a real guest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from errno import EAGAIN, EBUSY, ECHILD, EROFS
from typing import Any

import pytest

from vm.machine import Machine
from vm.shell.root import Root, root_of

pytestmark = pytest.mark.kernel

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def root() -> Iterator[Root]:
    with root_of(None) as root:
        yield root


@pytest.fixture
def equipped(machine: Machine, root: Root) -> Iterator[Machine]:
    """A guest that has mounted them."""
    machine.pristine(exports=root.exports)
    machine.call("", [["spawn", "a"]])
    call = ["mount_programs", [*map(list, root.mounts)], [*map(list, root.links)]]
    assert [each["errno"] for each in machine.call("a", [call, call])] == [0, 0]
    yield machine
    machine.pristine(exports=())


def run(machine: Machine, line: str) -> dict[str, Any]:
    """Run a line of sh to its end."""
    (started,) = machine.call("a", [["start_program", ["sh", "-c", line], ENVIRONMENT]])
    assert started["value"] > 1
    return ended(machine)


def ended(machine: Machine) -> dict[str, Any]:
    deadline = machine.deadline(8.0, "end of a program")
    while True:
        (result,) = machine.call("a", [["end_program"]])
        if result["errno"] != EAGAIN or deadline.expired:
            return result
        time.sleep(0.05)


def output(result: dict[str, Any]) -> str:
    return bytes.fromhex(result["data"]).decode()


def test_programs_run_to_their_end(equipped: Machine) -> None:
    """One guest for all: each boots in some seconds."""
    result = run(equipped, "pwd; echo bad >&2; ls /sys/kernel/tracing/trace; exit 3")
    assert result["value"] == 3
    assert output(result) == "/tmp\nbad\n/sys/kernel/tracing/trace\n"
    assert run(equipped, "kill -KILL $$")["value"] == 137
    assert output(run(equipped, "exec missing")).endswith("missing: not found\n")
    # What it leaves running does not keep it from ending.
    assert run(equipped, "sleep 60 & exit 4")["value"] == 4
    assert len(output(run(equipped, "yes | head -c 100000"))) == 65536
    (error,) = equipped.call("a", [["spill", "/mnt/usr/file", "00", 0o101]])
    assert error["errno"] == EROFS


def test_one_call_waits_for_a_short_program(equipped: Machine) -> None:
    words = ["start_program", ["sleep", "0.2"], ENVIRONMENT]
    started, result = equipped.call("a", [words, ["end_program"]])
    assert (started["errno"], result["errno"], result["value"]) == (0, 0, 0)


def test_programs_run_one_at_a_time(equipped: Machine) -> None:
    (none,) = equipped.call("a", [["end_program"]])
    assert none["errno"] == ECHILD
    words = ["start_program", ["sleep", "3"], ENVIRONMENT]
    first, running, second = equipped.call("a", [words, ["end_program"], words])
    assert [first["errno"], running["errno"], second["errno"]] == [0, EAGAIN, EBUSY]
    assert ended(equipped)["value"] == 0
