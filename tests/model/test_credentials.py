"""Operations on credentials: as C, as guest calls, and on the model."""

from __future__ import annotations

import os

import pytest

from conformance import ops
from conformance.abi.profile import profile_for
from conformance.model.machine import Model
from conformance.ops import Operation, credentials

# On the model


def answers(*program: Operation) -> list[str]:
    """The errno of each operation of a process that starts as root."""
    model = Model(profile_for("6.12.117"))
    errnos = []
    for operation in (ops.Spawn("p"), *program):
        (answer,) = model.step(operation)
        model.narrow(operation, ops.Observation(answer.value or 0, answer.errno, answer.data))
        errnos.append(answer.errno)
    return errnos[1:]


DATA = "/sys/kernel/tracing/user_events_data"
RW = os.O_RDWR


@pytest.mark.parametrize(
    ("program", "errno"),
    [
        pytest.param([ops.Open("p", 4, DATA, RW)], "", id="root"),
        pytest.param([ops.Setuid("p", 7), ops.Open("p", 4, DATA, RW)], "EACCES", id="user"),
        pytest.param(
            [ops.Chmod("p", "/proc/sys/kernel/user_events_max", 0o666)],
            "EPERM",
            id="sysctl",
        ),
        pytest.param([credentials.Capset("p", 0, 1)], "EPERM", id="effective-beyond-permitted"),
        pytest.param(
            [credentials.Capset("p", 0, 0), credentials.Capset("p", 1, 0)],
            "EPERM",
            id="dropped-capability",
        ),
        pytest.param(
            [credentials.Capset("p", 0, 0), credentials.Unshare("p", credentials.CLONE_NEWNS)],
            "EPERM",
            id="mounts-need-a-capability",
        ),
        pytest.param(
            [
                credentials.Unshare("p", credentials.CLONE_NEWNS),
                credentials.Umount("p", "/nowhere"),
            ],
            "EINVAL",
            id="nothing-mounted",
        ),
        pytest.param(
            [
                credentials.Unshare("p", credentials.CLONE_NEWNS),
                credentials.Mount("p", "tmpfs", "/run", "tmpfs"),
                credentials.Mount("p", DATA, "/run/data", "", credentials.MS_BIND),
            ],
            "ENOENT",
            id="mount-point-missing",
        ),
        pytest.param(
            [
                credentials.Unshare("p", credentials.CLONE_NEWNS),
                credentials.Mount("p", "tmpfs", "/sys/kernel/tracing", "tmpfs"),
                credentials.Umount("p", "/sys/kernel/tracing"),
                ops.Open("p", 4, DATA, RW),
            ],
            "",
            id="unmounted",
        ),
        pytest.param(
            [
                credentials.Unshare("p", credentials.CLONE_NEWNS),
                credentials.Mount("p", "tmpfs", "/run", "tmpfs"),
                ops.Mknod("p", "/run/f"),
                ops.Mknod("p", "/run/f"),
            ],
            "EEXIST",
            id="made-twice",
        ),
    ],
)
def test_permission_checks(program: list[Operation], errno: str) -> None:
    *before, last = answers(*program)
    assert (set(before) <= {""}, last) == (True, errno)


def test_a_child_inherits_credentials_and_seccomp() -> None:
    errnos = answers(
        credentials.Capset("p", 0, 0),
        credentials.NoNewPrivileges("p"),
        credentials.Seccomp("p", ("ioctl",), "ENOLINK"),
        ops.Open("p", 4, DATA, RW),
        ops.Fork("p", "c"),
        ops.Ioctl("c", 4, 0xC0082A00, 0),
        credentials.Capset("c", 1, 1),
    )
    assert errnos == ["", "", "", "", "", "ENOLINK", "EPERM"]
