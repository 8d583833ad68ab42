"""Dated changes of bpf(2): for each switch the smallest program that shows it."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.bpf import Bpf
from conformance.client.bpf_program import LogBuffer
from conformance.client.user_events import UserEvents
from conformance.ops.bpf_assembler import R0, exit_insn, mov64_imm

case = surface(
    "dated",
    spec="kernel/bpf/syscall.c:__sys_bpf",
    doc="include/uapi/linux/bpf.h@v4.1",
    isolation="none",
    facilities="bpf",
)

GOOD = [mov64_imm(R0, 0), exit_insn()]


@case(doc="silent about rights", switch="bpf_descriptor_suffices")
def test_bpf_descriptor_suffices(ue: UserEvents) -> None:
    """A process without capabilities can use a map by descriptor; in old kernels it cannot."""
    map_ = Bpf(ue.process).map()
    ue.process.setuid()
    errno = ue.dated("bpf_descriptor_suffices", since="ENOENT", before="EPERM")
    assert map_.lookup(b"key.").errno == errno


@case(
    spec="kernel/bpf/log.c:bpf_verifier_log_attr_valid",
    doc="log_buf is the buffer of user space, log_size its size",
    switch="bpf_log_without_buffer",
)
def test_bpf_log_without_buffer(ue: UserEvents) -> None:
    """A log level needs no buffer, and a buffer may have one byte; both were EINVAL."""
    system = Bpf(ue.process)
    alone = ue.dated("bpf_log_without_buffer", since="", before="EINVAL")
    short = ue.dated("bpf_log_without_buffer", since="ENOSPC", before="EINVAL")
    assert system.load(GOOD, log=LogBuffer(1)).errno == alone
    assert system.load(GOOD, log=LogBuffer(1, 1, ue.process.place(bytes(8)))).errno == short


@case(doc="silent about rights", switch="bpf_attributes_before_rights")
def test_bpf_attributes_before_rights(ue: UserEvents) -> None:
    """An unprivileged user gets the error of the map attributes; old kernels return EPERM first."""
    ue.process.setuid()
    errno = ue.dated("bpf_attributes_before_rights", since="EINVAL", before="EPERM")
    assert Bpf(ue.process).map(key_size=0).errno == errno


@case(
    spec="kernel/bpf/syscall.c:bpf_prog_load",
    doc="prog_type, insns and license are used by BPF_PROG_LOAD",
    switch="bpf_license_read_last",
)
def test_bpf_license_read_last(ue: UserEvents) -> None:
    """All-zero attributes are E2BIG for lack of instructions; old kernels check the license
    first.
    """
    errno = ue.dated("bpf_license_read_last", since="E2BIG", before="EFAULT")
    assert Bpf(ue.process).call(5, bytes(48), slot=20).errno == errno
