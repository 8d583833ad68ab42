"""Task operations that the model refuses, since a guest cannot do them."""

from __future__ import annotations

import pytest

from conformance import ops
from conformance.abi.profile import profile_for
from conformance.client.executor import ModelExecutor
from conformance.model.errors import NotModelled
from conformance.model.machine import Model
from conformance.ops import tasks
from conformance.ops.tasks import THREAD, VFORK


def run(*program: ops.Operation) -> list[ops.Observation]:
    """Run a program on the model."""
    return ModelExecutor(Model(profile_for("6.12"))).execute(program, ())


START = (ops.Spawn("d"), tasks.Clone("d", "a", 0))


def test_a_vfork_parent_waits_for_its_child() -> None:
    forked = (*START, tasks.Clone("a", "b", VFORK))
    act = ops.Mmap("a", 0x10000, 4096, 3, 2)
    with pytest.raises(NotModelled, match="waits for its vfork child"):
        run(*forked, act)
    for end in (ops.Exit("b"), tasks.Die("b"), tasks.Exec("b"), tasks.ExitTask("b")):
        assert run(*forked, end, act)[-1].value == 0x10000
    assert run(*forked, tasks.Die("a"))[-1].ok


def test_a_driver_outlives_its_tasks_and_does_not_vfork() -> None:
    for refused in (ops.Exit("d"), tasks.Clone("d", "b", VFORK)):
        with pytest.raises(NotModelled, match="drives tasks"):
            run(*START, refused)
    assert run(*START, ops.Exit("a"), ops.Exit("d"))[-1].ok


@pytest.mark.parametrize("end", [ops.Exit("b"), tasks.Die("b"), tasks.Exec("b")])
def test_threads_end_together(end: ops.Operation) -> None:
    program = (*START, tasks.Clone("a", "b", THREAD), tasks.Clone("b", "c", THREAD), end)
    with pytest.raises(NotModelled, match="'a' does not exist"):
        run(*program, ops.Load("a", 0, 1))
    with pytest.raises(NotModelled, match="'c' does not exist"):
        run(*program, ops.Load("c", 0, 1))
