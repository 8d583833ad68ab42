"""Operations on credentials: as C, as guest calls, and on the model."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator

import pytest

from conformance.abi.profile import profile_for
from conformance.model.machine import Model
from conformance.ops import credentials, digest
from conformance.ops import syscalls as op
from conformance.ops.c_source import statement
from conformance.ops.credentials import Capability
from conformance.ops.encode import credential_calls
from conformance.ops.encode.requests import calls_of
from conformance.ops.syscalls import Operation

EXAMPLES: dict[str, Operation] = {
    "p1: setgroups(2, (gid_t[]){5, 6}); "
    "setresgid(8, 8, 8); setresuid(7, 7, 7);": credentials.Become("p1", 7, 8, (5, 6)),
    "p1: prctl(PR_SET_KEEPCAPS, 1); setgroups(0, (gid_t[]){}); setresgid(7, 7, 7); "
    "setresuid(7, 7, 7);": credentials.Become("p1", 7, 7, keep=True),
    "p1: capset(v3, permitted all, effective CAP_SYS_ADMIN | CAP_PERFMON);": credentials.Capset(
        "p1", credentials.EVERYTHING, credentials.mask(Capability.SYS_ADMIN, Capability.PERFMON)
    ),
    "p1: capset(v3, permitted none, effective none);": credentials.Capset("p1", 0, 0),
    "p1: prctl(PR_SET_NO_NEW_PRIVS, 1);": credentials.NoNewPrivileges("p1"),
    "p1: seccomp(SECCOMP_SET_MODE_FILTER, 0, /* ioctl, writev: EPERM */);": credentials.Seccomp(
        "p1", ("ioctl", "writev"), "EPERM"
    ),
    "p1: unshare(CLONE_NEWNS | CLONE_NEWUSER);": credentials.Unshare(
        "p1", credentials.CLONE_NEWUSER | credentials.CLONE_NEWNS
    ),
    'p1: chroot("/t");': credentials.Chroot("p1", "/t"),
    'p1: mount("tmpfs", "/run", "tmpfs", 0, 0);': credentials.Mount("p1", "tmpfs", "/run", "tmpfs"),
    'p1: mount("none", "/t", "", MS_RDONLY | MS_REMOUNT | MS_BIND, 0);': credentials.Mount(
        "p1", "none", "/t", "", credentials.MS_BIND | credentials.MS_REMOUNT | credentials.MS_RDONLY
    ),
    'p1: mount("none", "/t", "", MS_REMOUNT, "gid=7");': credentials.Mount(
        "p1", "none", "/t", "", credentials.MS_REMOUNT, "gid=7"
    ),
    'p1: umount2("/t", MNT_DETACH);': credentials.Umount("p1", "/t"),
    'p1: mknod("/run/f", S_IFREG | 0600, 0);': credentials.Mknod("p1", "/run/f"),
    'p1: mkdir("/run/d", 0755);': credentials.Mkdir("p1", "/run/d"),
    'p1: chmod("/f", 0604);': credentials.Chmod("p1", "/f", 0o604),
    'p1: chown("/f", -1, 7);': credentials.Chown("p1", "/f", gid=7),
    'p1: stat("/f", &st), st.st_uid, st.st_gid;': credentials.Ownership("p1", "/f"),
    "p1: getdents64(fd4, buffer, sizeof(buffer));": credentials.Getdents("p1", 4),
}


def kinds() -> Iterator[str]:
    """The names of all operations on credentials."""
    for name, kind in vars(credentials).items():
        if (
            isinstance(kind, type)
            and issubclass(kind, credentials.Right)
            and not kind.__subclasses__()
        ):
            yield name


@pytest.mark.parametrize(("text", "operation"), EXAMPLES.items(), ids=range(len(EXAMPLES)))
def test_every_operation_has_c_json_and_calls(text: str, operation: Operation) -> None:
    assert statement(operation) == text
    assert json.loads(json.dumps(digest.encode(operation)))["op"] == type(operation).__name__
    assert json.loads(json.dumps(calls_of(operation)))


def test_every_operation_has_an_example() -> None:
    assert {type(each).__name__ for each in EXAMPLES.values()} == set(kinds())


def test_capabilities_have_kernel_numbers() -> None:
    assert [each.value for each in Capability] == list(range(41))
    assert credentials.mask(Capability.PERFMON, Capability.PERFMON) == 1 << 38


def run(code: bytes, architecture: int, number: int) -> int:
    """The return value of a classic BPF filter, for the instructions that ours uses."""
    words = {0: number, 4: architecture}
    program = list(struct.iter_unpack("<HBBI", code))
    accumulator = position = 0
    while True:
        operation, jump, other, constant = program[position]
        position += 1
        match operation:
            case 0x20:
                accumulator = words[constant]
            case 0x15:
                position += jump if accumulator == constant else other
            case 0x06:
                return int(constant)


@pytest.mark.parametrize(
    ("architecture", "number", "answer"),
    [
        pytest.param(0xC000003E, 16, 0x00050001, id="first"),
        pytest.param(0xC000003E, 20, 0x00050001, id="last"),
        pytest.param(0xC000003E, 1, 0x7FFF0000, id="another-call"),
        pytest.param(0x40000003, 16, 0x7FFF0000, id="another-architecture"),
    ],
)
def test_seccomp_refuses_the_named_calls(architecture: int, number: int, answer: int) -> None:
    _, stored, _ = credential_calls.calls_of(
        credentials.Seccomp("p1", ("ioctl", "writev"), "EPERM")
    )
    raw = bytes.fromhex(str(stored[2]))
    length, where = struct.unpack_from("<HxxxxxxQ", raw)
    assert (length, where) == ((len(raw) - 16) // 8, int(str(stored[1])) + 16)
    assert run(raw[16:], architecture, number) == answer


def test_directory_entries_are_parsed() -> None:
    names = (b"b", b"abcdefgh", b".")
    raw = b""
    for name in names:
        length = (19 + len(name) + 1 + 7) // 8 * 8
        raw += (struct.pack("<QqHB", 1, 2, length, 4) + name).ljust(length, b"\0")
    assert credential_calls.answer(credentials.Getdents("p1", 4), raw) == b".\nabcdefgh\nb\n"
    assert credential_calls.answer(credentials.Getdents("p1", 4, "a"), raw) == b"abcdefgh\n"


# On the model


def answers(*program: Operation) -> list[str]:
    """The errno of each operation of a process that starts as root."""
    model = Model(profile_for("6.12.117"))
    errnos = []
    for operation in (op.Spawn("p"), *program):
        (answer,) = model.step(operation)
        model.narrow(operation, op.Observation(answer.value or 0, answer.errno, answer.data))
        errnos.append(answer.errno)
    return errnos[1:]


DATA = "/sys/kernel/tracing/user_events_data"
RW = os.O_RDWR


@pytest.mark.parametrize(
    ("program", "errno"),
    [
        pytest.param([op.Open("p", 4, DATA, RW)], "", id="root"),
        pytest.param([op.Setuid("p", 7), op.Open("p", 4, DATA, RW)], "EACCES", id="user"),
        pytest.param(
            [credentials.Chmod("p", "/proc/sys/kernel/user_events_max", 0o666)],
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
                op.Open("p", 4, DATA, RW),
            ],
            "",
            id="unmounted",
        ),
        pytest.param(
            [
                credentials.Unshare("p", credentials.CLONE_NEWNS),
                credentials.Mount("p", "tmpfs", "/run", "tmpfs"),
                credentials.Mknod("p", "/run/f"),
                credentials.Mknod("p", "/run/f"),
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
        op.Open("p", 4, DATA, RW),
        op.Fork("p", "c"),
        op.Ioctl("c", 4, 0xC0082A00, 0),
        credentials.Capset("c", 1, 1),
    )
    assert errnos == ["", "", "", "", "", "ENOLINK", "EPERM"]
