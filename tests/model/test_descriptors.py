"""Calls on descriptors that the model refuses to judge."""

from __future__ import annotations

import os

import pytest

from conformance import ops
from conformance.abi.profile import profile_for
from conformance.model.errors import NotModelled
from conformance.model.machine import Model
from conformance.model.tracefs.files import DATA, STATUS
from conformance.ops import compat

PROFILE = profile_for("6.12.117")
# FIOCLEX, FIONBIO, FIONREAD, FIGETBSZ, FS_IOC_GETFLAGS; the third has garbage above 32 bits.
GENERIC = (0x5451, 0x5421, 0x1_0000_541B, 2, 0x80086601)


def opened(path: str, flags: int = os.O_RDONLY) -> Model:
    """A process with a file in slot 1."""
    model = Model(PROFILE)
    model.step(ops.Spawn("p1"))
    model.step(ops.Open("p1", 1, path, flags))
    return model


@pytest.mark.parametrize("request_", GENERIC)
@pytest.mark.parametrize("path", [DATA, STATUS])
def test_ioctls_of_the_vfs(path: str, request_: int) -> None:
    with pytest.raises(NotModelled, match="of the VFS"):
        opened(path).step(ops.Ioctl("p1", 1, request_, 0))


def test_ioctls_of_the_vfs_of_a_32_bit_task() -> None:
    with pytest.raises(NotModelled, match="of the VFS"):
        opened(DATA).step(compat.Ioctl32("p1", 1, 0x5451, 0))


def test_other_ioctls_reach_the_file() -> None:
    assert {each.errno for each in opened(DATA).step(ops.Ioctl("p1", 1, 0x5401, 0))} == {"ENOTTY"}


def test_other_files_with_neither_right() -> None:
    with pytest.raises(NotModelled, match="with O_ACCMODE"):
        opened(STATUS, os.O_ACCMODE)


def test_a_bad_vector_on_a_read_only_descriptor() -> None:
    """The order of the two checks differs by release."""
    with pytest.raises(NotModelled, match="EFAULT on a file with EBADF"):
        opened(DATA).step(compat.Writev32("p1", 1, 0x1000, 1))
