"""Programs of bpf.h: loading them."""

from __future__ import annotations

from conformance.cases.declare import case
from conformance.program.bpf import R0, exit_insn, mov64_imm
from conformance.sut.bpf import Bpf
from conformance.sut.user_events import UserEvents

ALWAYS = "5.18.."
HEADER = "include/uapi/linux/bpf.h@v4.1"


@case(
    "bpf.filter_cuts",
    spec="net/core/filter.c:sk_filter_trim_cap",
    doc=f"{HEADER}: BPF_PROG_LOAD gives a descriptor, here of a socket filter",
    profiles=ALWAYS,
    isolation="none",
)
def test_filter_cuts(ue: UserEvents) -> None:
    """What a socket filter answers is how many bytes of a datagram are left, 0 none of it."""
    system = Bpf(ue.process)
    for length, left in ((3, b"abc"), (0, None), (9, b"abcdef")):
        program = system.load([mov64_imm(R0, length), exit_insn()])
        assert program.errno == ""
        assert system.run(program, b"abcdef") == left
