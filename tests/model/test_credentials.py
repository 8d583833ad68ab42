"""Operations on credentials, on the model."""

from __future__ import annotations

import os

import pytest

from conformance import ops
from conformance.model.machine import Model
from conformance.ops import Operation
from conformance.ops.credentials import (
    CLONE_NEWNS,
    MS_BIND,
    Capset,
    Mount,
    NoNewPrivileges,
    Seccomp,
    Umount,
    Unshare,
)
from tests.cases.variants import PROFILE


def answers(*program: Operation) -> list[str]:
    """The errno of each operation of a process that starts as root."""
    model = Model(PROFILE)
    errnos = []
    for operation in (ops.Spawn("p"), *program):
        (answer,) = model.step(operation)
        model.narrow(operation, ops.Observation(answer.value or 0, answer.errno, answer.data))
        errnos.append(answer.errno)
    return errnos[1:]


DATA = "/sys/kernel/tracing/user_events_data"
RW = os.O_RDWR
NEW_MOUNTS = Unshare("p", CLONE_NEWNS)
TMPFS = Mount("p", "tmpfs", "/run", "tmpfs")


@pytest.mark.parametrize(
    ("program", "errno"),
    [
        ([ops.Open("p", 4, DATA, RW)], ""),
        ([ops.Setuid("p", 7), ops.Open("p", 4, DATA, RW)], "EACCES"),
        ([ops.Chmod("p", "/proc/sys/kernel/user_events_max", 0o666)], "EPERM"),
        # An effective capability that is not permitted, and one that was dropped.
        ([Capset("p", 0, 1)], "EPERM"),
        ([Capset("p", 0, 0), Capset("p", 1, 0)], "EPERM"),
        ([Capset("p", 0, 0), NEW_MOUNTS], "EPERM"),
        # Nothing is mounted there, and there is no such directory.
        ([NEW_MOUNTS, Umount("p", "/nowhere")], "EINVAL"),
        ([NEW_MOUNTS, TMPFS, Mount("p", DATA, "/run/data", "", MS_BIND)], "ENOENT"),
        (
            [
                NEW_MOUNTS,
                Mount("p", "tmpfs", "/sys/kernel/tracing", "tmpfs"),
                Umount("p", "/sys/kernel/tracing"),
                ops.Open("p", 4, DATA, RW),
            ],
            "",
        ),
        ([NEW_MOUNTS, TMPFS, ops.Mknod("p", "/run/f"), ops.Mknod("p", "/run/f")], "EEXIST"),
    ],
)
def test_permission_checks(program: list[Operation], errno: str) -> None:
    *before, last = answers(*program)
    assert (set(before) <= {""}, last) == (True, errno)


def test_a_child_inherits_credentials_and_seccomp() -> None:
    errnos = answers(
        Capset("p", 0, 0),
        NoNewPrivileges("p"),
        Seccomp("p", ("ioctl",), "ENOLINK"),
        ops.Open("p", 4, DATA, RW),
        ops.Fork("p", "c"),
        ops.Ioctl("c", 4, 0xC0082A00, 0),
        Capset("c", 1, 1),
    )
    assert errnos == ["", "", "", "", "", "ENOLINK", "EPERM"]
