"""Tasks on the host: their code, and what they share."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from vm.guest import task_program, tasks

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "vm" / "guest" / "native" / "tasks.S"
# Tasks become children of the actor's parent, so give them one that ends.
_OUTER = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
_DRIVING = """
import json, os, sys, time
real = time.monotonic
time.monotonic = lambda: real() * float(sys.argv[2])
from vm.guest.races import race
from vm.guest.task_driver import Driver
driver = Driver({1: os.open("/dev/null", os.O_RDWR)}, os.dup(0))
seen = []
own = {"task": driver.make, "race": lambda _, tracks: race(driver, tracks)}
for name, form, *rest in json.loads(sys.argv[1]):
    seen.append(own[form](name, *rest) if form in own else driver.via(name, [form, *rest]))
driver.end()
print(json.dumps([(value, errno, data and data.hex()) for value, errno, data in seen]))
"""
THREAD = tasks.CLONE_VM | 0x200 | tasks.CLONE_FILES | 0x800 | tasks.CLONE_THREAD
GETPID, GETTID = ["sys", 39, [], None], ["sys", 186, [], None]
CLOSE, WRITE = ["sys", 3, [{"fd": 1}], None], ["sys", 1, [{"fd": 1}, {"in": "4142"}, 2], None]
CLOSE_NOTHING = ["sys", 3, [800], None]
TWO_THREADS = (["a", "task", None, 0], ["b", "task", "a", THREAD])
BAD_DESCRIPTOR, MISSING = [-1, 9, None], [-1, 2, None]


def driven(*steps: list[Any], clock: float = 1) -> list[list[Any]]:
    """The results of steps (task, call, ...) in a driver in its own process.

    Its clock is so many times too fast.
    """
    inner = [sys.executable, "-c", _DRIVING, json.dumps(steps), str(clock)]
    done = subprocess.run(
        [sys.executable, "-c", _OUTER, *inner],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[list[Any]] = json.loads(done.stdout)
    return answers


def test_constants_in_the_code_match() -> None:
    lines = (line.split() for line in SOURCE.read_text().splitlines())
    defined = {line[1]: int(line[2], 0) for line in lines if line[:1] == ["#define"]}
    assert 1 << defined["MAILBOX_SHIFT"] == task_program.MAILBOX
    for name in ("MAILBOXES", "MAILBOXES_FD", "COUNT"):
        assert getattr(task_program, name) == defined[name]
    for name in ("CALL64", "CALL32", "CLONE", "RACE", "TALLIED", "STEP"):
        assert getattr(tasks, name) == defined[name]


def test_thread_shares_its_process() -> None:
    (made, *_), (thread, *_), (pid, *_), (tid, *_), closed, written = driven(
        *TWO_THREADS, ["b", *GETPID], ["b", *GETTID], ["b", *CLOSE], ["a", *WRITE]
    )
    assert (pid, tid) == (made, thread)
    assert made != thread
    assert (closed, written) == ([0, 0, None], BAD_DESCRIPTOR)


def test_vfork_copies_descriptors() -> None:
    seen = driven(
        ["a", "task", None, 0],
        ["b", "task", "a", tasks.CLONE_VM | tasks.CLONE_VFORK],
        ["b", *CLOSE],
        ["b", "exit", 3],
        ["a", *WRITE],
    )
    assert seen[2:] == [[0, 0, None], [0, 0, None], [2, 0, None]]


def test_exec_keeps_the_mailbox(tmp_path: Path) -> None:
    seen = driven(
        *TWO_THREADS,
        ["b", "exec", str(tmp_path / "none")],
        ["b", "exec", ""],
        ["b", *GETTID],
        ["b", "peek", task_program.PROGRAM, 3],
        ["b", *WRITE],
    )
    process = seen[0][0]
    assert seen[2] == MISSING
    # It has the id of the process, and /dev/null was opened O_CLOEXEC.
    assert seen[3:5] == [[process, 0, None], [process, 0, None]]
    assert seen[6] == BAD_DESCRIPTOR


def test_int80_uses_32_bit_numbers() -> None:
    seen = driven(
        ["a", "task", None, 0],
        ["a", "int80", 20, [], None],
        ["a", "int80", 4, [{"fd": 1}, {"in": "414243"}, 3], None],
        ["a", "int80", 4, [{"fd": 2}, {"in": "414243"}, 3], None],
    )
    assert seen[1][0] == seen[0][0]
    assert seen[2:] == [[3, 0, None], BAD_DESCRIPTOR]


def test_leader_exits_before_its_threads() -> None:
    seen = driven(
        *TWO_THREADS,
        ["c", "task", "a", THREAD],
        ["a", "exit_task", 0],
        ["b", *WRITE],
        ["c", "die"],
    )
    assert seen[3:] == [[0, 0, None], [2, 0, None], [0, 0, None]]


SLEEP = ["sys", 35, [{"in": struct.pack("<qq", 2, 0).hex()}, 0], None]


def test_host_decides_when_a_call_hangs() -> None:
    *_, slept = driven(["a", "task", None, 0], ["a", *SLEEP], clock=50)
    assert slept == [0, 0, None]


def test_driver_sleeps_until_a_task_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The diagnosis of a hang blames a program that computes."""
    end = time.monotonic() + 0.3
    rounds: list[float] = []

    def alive(_: tasks.Task) -> bool:
        rounds.append(time.monotonic())
        return rounds[-1] < end

    monkeypatch.setattr(tasks.Task, "_is_alive", alive)
    object.__new__(tasks.Task).wait()
    assert len(rounds) <= 302


MEMORY = 0x2000_0000
MAP = ["sys", 9, [MEMORY, 4096, 3, 0x22, (1 << 64) - 1, 0], None]


def race(*tracks: list[Any]) -> list[Any]:
    """A step in which tasks perform calls at once."""
    return ["", "race", list(tracks)]


def raced(seen: list[Any]) -> Any:
    """Counts of return values by track and call."""
    return json.loads(bytes.fromhex(seen[2]))


def test_race_counts_return_values() -> None:
    *_, seen, memory = driven(
        *TWO_THREADS,
        ["a", *MAP],
        race(
            ["a", 5000, [["add", MEMORY, 1, 1], CLOSE_NOTHING]],
            ["b", 3000, [["add", MEMORY, 65536, 2]]],
        ),
        ["a", "peek", MEMORY, 8],
    )
    assert raced(seen) == [[[[5000, 0]], [[5000, -9]]], [[[3000, 0]]]]
    assert memory[2] == (5000 + 6000 * 65536).to_bytes(8, "little").hex()


def test_race_distinguishes_four_values() -> None:
    # Every dup returns another number.
    dup = ["sys", 32, [{"fd": 1}], None]
    *_, seen = driven(["a", "task", None, 0], race(["a", 9, [dup]]))
    ((tally,),) = raced(seen)
    assert [count for count, _ in tally] == [1, 1, 1, 1, 5]
    assert tally[-1][1] is None


def test_race_fills_slots() -> None:
    dup = ["sys", 32, [{"fd": 1}], 7]
    *_, seen, written = driven(
        ["a", "task", None, 0],
        race(["a", 1, [dup, ["sys", 3, [{"fd": 9}], None]]]),
        ["a", "sys", 1, [{"fd": 7}, {"in": "4142"}, 2], None],
    )
    # Slot 9 is empty.
    assert raced(seen) == [[[[1, 0]], [[1, -9]]]]
    assert written == [2, 0, None]


def test_race_creates_and_ends_tasks() -> None:
    (first, *_), _, _, seen, (pid, *_), written = driven(
        *TWO_THREADS,
        ["a", *MAP],
        race(
            ["a", 1, [["task", "c", "a", 0], ["task", "d", "a", THREAD]]],
            ["b", 1, [["add", MEMORY, 1, 1], ["exit_task", 0]]],
        ),
        ["c", *GETPID],
        ["d", *WRITE],
    )
    assert raced(seen) == [[[[1, 0]], [[1, 0]]], [[[1, 0]], [[1, 0]]]]
    assert pid != first
    assert written == [2, 0, None]
