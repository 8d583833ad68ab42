"""The verifier log.  Its text is no ABI: only what must be in it is compared."""

from collections.abc import Sequence

from conformance.cases.case import UserEvents, surface, variants
from conformance.client.addresses import PAGE
from conformance.client.bpf import Bpf
from conformance.client.bpf_program import LogBuffer
from conformance.ops.bpf_assembler import (
    Piece,
    alu64_imm,
    call,
    exit_insn,
    ld_map_fd,
    ldx_mem,
    mov64_imm,
    mov64_reg,
    st_mem,
)
from conformance.ops.bpf_opcodes import R0, R1, R2, R6, R10, Alu, Size

SPEC = "kernel/bpf/verifier.c:bpf_check; kernel/bpf/log.c:bpf_vlog_finalize"
DOC = (
    "include/uapi/linux/bpf.h@v4.1: log_level, log_size and log_buf: the verifier's log, of "
    "a format that changes"
)
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

GOOD = [mov64_imm(R0, 0), exit_insn()]
LONG = [*(mov64_imm(R0, number) for number in range(40)), exit_insn()]
NOWHERE = 0x1000


def logged(ue: UserEvents, program: Sequence[Piece], level: int) -> tuple[str, str]:
    """Errno of loading a program, and its log up to the NUL."""
    address = ue.process.map(2)
    ue.process.store(address, b"\xee" * 2 * PAGE)
    loaded = Bpf(ue.process).load(program, log=LogBuffer(level, 2 * PAGE - 8, address))
    text, nul, _ = (ue.process.load(address, PAGE).data or b"").partition(b"\0")
    assert nul == b"\0"
    assert ue.process.load(address + 2 * PAGE - 8, 8).data == b"\xee" * 8
    return loaded.errno, text.decode()


@case
@variants(
    ("unset", [mov64_reg(R0, R6), exit_insn()], "R6 !read_ok"),
    ("unset-answer", [exit_insn()], "R0 !read_ok"),
    (
        "number",
        [mov64_imm(R2, 0), ldx_mem(Size.W, R0, R2, 0), exit_insn()],
        "R2 invalid mem access",
    ),
    ("frame", [mov64_imm(R10, 0), *GOOD], "frame pointer is read only"),
)
def test_log_names_register(ue: UserEvents, program: Sequence[Piece], message: str) -> None:
    """The log of a rejected program ends with NUL within its buffer, and names the error."""
    errno, text = logged(ue, program, 1)
    assert errno == "EACCES"
    assert message in text
    assert text.endswith("\n")


@case
@variants(1, 2, 4, 7)
def test_log_of_good(ue: UserEvents, level: int) -> None:
    """At every level the log of a valid program has the number of processed instructions."""
    errno, text = logged(ue, GOOD, level)
    assert errno == ""
    assert "processed 2 insns" in text


@case
def test_log_of_lookup(ue: UserEvents) -> None:
    """The log names the register of a lookup result that was used without a NULL check."""
    slot = Bpf(ue.process).map().slot
    program: list[Piece] = [
        st_mem(Size.DW, R10, -8, 0),
        mov64_reg(R2, R10),
        alu64_imm(Alu.ADD, R2, -8),
        ld_map_fd(R1, slot),
        call(1),
        st_mem(Size.DW, R0, 0, 0),
        *GOOD,
    ]
    errno, text = logged(ue, program, 1)
    assert errno == "EACCES"
    assert "R0 invalid mem access" in text


@case
def test_log_too_long(ue: UserEvents) -> None:
    """A log that does not fit is ENOSPC, though the program is valid, and is truncated."""
    system, process = Bpf(ue.process), ue.process
    address = process.map()
    process.store(address, b"\xee" * PAGE)
    assert system.load(LONG, log=LogBuffer(1, 128, address)).errno == "ENOSPC"
    text = process.load(address, 128).data or b""
    assert b"\0" in text[1:]
    assert text[:1].isascii()
    assert process.load(address + 128, 8).data == b"\xee" * 8
    assert system.load(LONG).errno == ""


@case(spec="kernel/bpf/log.c:bpf_verifier_log_attr_valid")
@variants(
    ("size-without-buffer", 1, PAGE, 0),
    ("buffer-without-size", 1, 0, NOWHERE),
    ("buffer-without-level", 0, PAGE, NOWHERE),
    ("size-without-level", 0, PAGE, 0),
    ("unknown-level", 1 << 16, PAGE, NOWHERE),
    ("last-level", 0xFFFFFFFF, PAGE, NOWHERE),
    ("size-too-large", 1, 0xFFFFFFFF, NOWHERE),
)
def test_log_refused(ue: UserEvents, level: int, size: int, address: int) -> None:
    """Level, size and buffer of a log must be consistent: EINVAL, however valid the program."""
    system = Bpf(ue.process)
    assert system.load(GOOD, log=LogBuffer(level, size, address)).errno == "EINVAL"
    assert system.load(GOOD).errno == ""


@case
@variants({"good": GOOD, "bad": [exit_insn()]})
def test_log_unwritable(ue: UserEvents, program: Sequence[Piece]) -> None:
    """An unwritable log buffer is EFAULT, whatever the program."""
    log = LogBuffer(1, 2 * PAGE, NOWHERE)
    assert Bpf(ue.process).load(program, log=log).errno == "EFAULT"


@case
def test_no_log(ue: UserEvents) -> None:
    """Without a level nothing is logged, and the program is verified all the same."""
    system, process = Bpf(ue.process), ue.process
    address = process.map()
    process.store(address, b"untouched")
    assert system.load(GOOD, log=LogBuffer(0, 0, 0)).errno == ""
    assert system.load([exit_insn()], log=LogBuffer(0, 0, 0)).errno == "EACCES"
    assert process.load(address, 9).data == b"untouched"
