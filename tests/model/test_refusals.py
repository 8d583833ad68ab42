"""Errors of the model: their names, and what it refuses to judge.

What it accepts is compared with the kernel by the cases.
"""

from __future__ import annotations

import os

import pytest

from conformance import ops
from conformance.abi.profile import profile_for
from conformance.client.executor import ModelExecutor
from conformance.model.errors import Errno, NotModelled
from conformance.model.machine import Model
from conformance.model.text import definition, filter_parser
from conformance.model.tracefs.files import DATA, STATUS
from conformance.ops import compat, tasks
from conformance.ops.tasks import THREAD, VFORK
from tests.cases.variants import PROFILE


def run(*program: ops.Operation) -> list[ops.Observation]:
    """Run a program on the model."""
    return ModelExecutor(Model(PROFILE)).execute(program, ())


def test_an_alias_becomes_the_name_in_observations() -> None:
    assert (Errno("EOPNOTSUPP").name, Errno("EWOULDBLOCK").name) == ("ENOTSUP", "EAGAIN")


@pytest.mark.parametrize("name", ["EOOPS", "errorcode", ""])
def test_an_unknown_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of an errno"):
        Errno(name)


# Calls on descriptors


def opened(path: str, flags: int = os.O_RDONLY) -> tuple[ops.Operation, ...]:
    """A process with a file in slot 1."""
    return ops.Spawn("p1"), ops.Open("p1", 1, path, flags)


@pytest.mark.parametrize(
    "operation",
    [
        ops.Ioctl("p1", 1, 0x5451, 0),  # FIOCLEX
        compat.Ioctl32("p1", 1, 0x5451, 0),
        ops.Ioctl("p1", 1, 0x5421, 0),  # FIONBIO
        ops.Ioctl("p1", 1, 0x1_0000_541B, 0),  # FIONREAD, with garbage above 32 bits
        ops.Ioctl("p1", 1, 2, 0),  # FIGETBSZ
        ops.Ioctl("p1", 1, 0x80086601, 0),  # FS_IOC_GETFLAGS
    ],
)
@pytest.mark.parametrize("path", [DATA, STATUS])
def test_ioctls_of_the_vfs(path: str, operation: ops.Operation) -> None:
    with pytest.raises(NotModelled, match="of the VFS"):
        run(*opened(path), operation)


def test_other_ioctls_reach_the_file() -> None:
    model = Model(PROFILE)
    ModelExecutor(model).execute(opened(DATA), ())
    assert {each.errno for each in model.step(ops.Ioctl("p1", 1, 0x5401, 0))} == {"ENOTTY"}


def test_other_files_with_neither_right() -> None:
    with pytest.raises(NotModelled, match="with O_ACCMODE"):
        run(*opened(STATUS, os.O_ACCMODE))


def test_a_bad_vector_on_a_read_only_descriptor() -> None:
    """The order of the two checks differs by release."""
    with pytest.raises(NotModelled, match="EFAULT on a file with EBADF"):
        run(*opened(DATA), compat.Writev32("p1", 1, 0x1000, 1))


# Tasks, since a guest cannot do this

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
    for name in ("a", "c"):
        with pytest.raises(NotModelled, match=f"'{name}' does not exist"):
            run(*program, ops.Load(name, 0, 1))


# Filters

FIELDS = definition.parse_fields(
    "u32 a; s16 b; char[4] c; __rel_loc char[] r; __data_loc char[] d; struct s e 20", PROFILE
)


@pytest.mark.parametrize("text", ["cpu == 1", "a == 1 &&", "c.ustring == 'x'", 'comm == "bash"'])
def test_unused_filter_syntax_is_not_modelled(text: str) -> None:
    with pytest.raises(NotModelled):
        filter_parser.parse(text, FIELDS, PROFILE)


@pytest.mark.parametrize("text", ['c == "hi"', 'r == "hi"', 'd == "hi"'])
def test_no_field_is_a_string_before_6_4(text: str) -> None:
    with pytest.raises(Errno, match="EINVAL"):
        filter_parser.parse(text, FIELDS, profile_for("6.1"))
