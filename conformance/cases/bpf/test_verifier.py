"""Programs that the verifier rejects, and similar ones that it accepts."""

from collections.abc import Sequence

from conformance.cases.case import UserEvents, surface, variants
from conformance.client.bpf import Bpf
from conformance.ops.bpf_assembler import (
    Instruction,
    Label,
    Piece,
    alu32_imm,
    alu64_imm,
    alu64_reg,
    endian,
    exit_insn,
    ja,
    jmp_imm,
    ld_imm64,
    ldx_mem,
    mov64_imm,
    mov64_reg,
    st_mem,
    stx_mem,
    stx_xadd,
)
from conformance.ops.bpf_opcodes import R0, R1, R2, R6, R9, R10, Alu, Jump, Size

DOC = "include/uapi/linux/bpf.h@v4.1: BPF_PROG_LOAD verifies a program before it loads it"
case = surface("bpf", doc=DOC, level="detail", tier="full", isolation="none", facilities="bpf")

END = [mov64_imm(R0, 0), exit_insn()]


@case(spec="kernel/bpf/verifier.c:check_subprogs, check_cfg")
@variants(
    ("good", [mov64_imm(R0, 0), exit_insn()], ""),
    ("no-exit", [mov64_imm(R0, 0)], "EINVAL"),
    ("falls-off", [exit_insn(), mov64_imm(R0, 0)], "EINVAL"),
    ("jump-behind-end", [mov64_imm(R0, 0), ja(1), exit_insn()], "EINVAL"),
    ("jump-to-end", [mov64_imm(R0, 0), ja(0), exit_insn()], ""),
    ("jump-before-begin", [mov64_imm(R0, 0), jmp_imm(Jump.JEQ, R0, 1, -3), *END], "EINVAL"),
    ("unreachable", [mov64_imm(R0, 0), exit_insn(), *END], "EINVAL"),
    ("unreachable-behind-jump", [mov64_imm(R0, 0), ja(1), mov64_imm(R0, 1), exit_insn()], "EINVAL"),
    ("endless", [mov64_imm(R0, 0), ja(-1), exit_insn()], "EINVAL"),
    (
        "endless-with-way-out",
        [ldx_mem(Size.W, R0, R1, 0), jmp_imm(Jump.JEQ, R0, 0, -1), exit_insn()],
        "EINVAL",
    ),
    ("jump-last", [ja(1), exit_insn(), mov64_imm(R0, 0), ja(-3)], ""),
    ("opcode-ff", [Instruction(0xFF), *END], "EINVAL"),
    ("opcode-e7", [Instruction(0xE7), *END], "EINVAL"),
    ("opcode-0", [Instruction(0), *END], "EINVAL"),
    ("exit-with-number", [mov64_imm(R0, 0), Instruction(0x95, imm=1)], "EINVAL"),
    ("exit-with-register", [mov64_imm(R0, 0), Instruction(0x95, dst=1)], "EINVAL"),
    ("jump-with-register", [mov64_imm(R0, 0), Instruction(0x05, src=1), exit_insn()], "EINVAL"),
    ("load-with-number", [Instruction(0x61, R0, R1, 0, 1), exit_insn()], "EINVAL"),
    ("store-with-register", [Instruction(0x7A, R10, R1, -8), *END], "EINVAL"),
    ("wide-load-half", [mov64_imm(R0, 0), Instruction(0x18, R0)], "EINVAL"),
    ("wide-load-second", [Instruction(0x18, R0), Instruction(0x18), exit_insn()], "EINVAL"),
    (
        "wide-load-second-register",
        [Instruction(0x18, R0), Instruction(0, dst=1), exit_insn()],
        "EINVAL",
    ),
    ("jump-into-wide-load", [ja(1), ld_imm64(R0, 1), exit_insn()], "EINVAL"),
)
def test_refused_structure(ue: UserEvents, program: Sequence[Piece], errno: str) -> None:
    """Opcodes must be known, unused fields zero, all code reachable, and every path must exit."""
    assert Bpf(ue.process).load(program).errno == errno


@case(spec="kernel/bpf/verifier.c:check_reg_arg")
@variants(
    ("answer-unset", [exit_insn()], "EACCES"),
    ("operand-unset", [mov64_reg(R0, R2), exit_insn()], "EACCES"),
    ("target-unset", [alu64_imm(Alu.ADD, R0, 1), exit_insn()], "EACCES"),
    ("compared-unset", [mov64_imm(R0, 0), jmp_imm(Jump.JEQ, R9, 0, 0), exit_insn()], "EACCES"),
    ("stored-unset", [stx_mem(Size.DW, R10, R6, -8), *END], "EACCES"),
    (
        "set-on-one-way",
        [
            ldx_mem(Size.W, R2, R1, 0),
            jmp_imm(Jump.JEQ, R2, 0, "out"),
            mov64_imm(R0, 0),
            Label("out"),
            exit_insn(),
        ],
        "EACCES",
    ),
    (
        "set-on-both-ways",
        [
            ldx_mem(Size.W, R2, R1, 0),
            mov64_imm(R0, 1),
            jmp_imm(Jump.JEQ, R2, 0, "out"),
            mov64_imm(R0, 0),
            Label("out"),
            exit_insn(),
        ],
        "",
    ),
    (
        "set-where-it-matters",
        [mov64_imm(R2, 5), jmp_imm(Jump.JNE, R2, 5, 1), mov64_imm(R0, 0), exit_insn()],
        "",
    ),
    ("frame-set", [mov64_imm(R10, 0), *END], "EACCES"),
    ("frame-moved", [alu64_imm(Alu.ADD, R10, -8), *END], "EACCES"),
    ("frame-loaded", [ldx_mem(Size.W, R10, R1, 0), *END], "EACCES"),
    ("frame-swapped", [endian(0, R10, 16), *END], "EACCES"),
    ("register-11", [mov64_imm(11, 0), *END], "EINVAL"),
    ("register-15-read", [mov64_reg(R0, 15), exit_insn()], "EINVAL"),
    ("divided-by-number-0", [mov64_imm(R0, 1), alu64_imm(Alu.DIV, R0, 0), exit_insn()], "EINVAL"),
    ("remainder-of-number-0", [mov64_imm(R0, 1), alu32_imm(Alu.MOD, R0, 0), exit_insn()], "EINVAL"),
    ("shift-64", [mov64_imm(R0, 1), alu64_imm(Alu.LSH, R0, 64), exit_insn()], "EINVAL"),
    ("shift-32-of-32", [mov64_imm(R0, 1), alu32_imm(Alu.RSH, R0, 32), exit_insn()], "EINVAL"),
    ("shift-minus-1", [mov64_imm(R0, 1), alu64_imm(Alu.ARSH, R0, -1), exit_insn()], "EINVAL"),
    ("swap-24", [mov64_imm(R0, 1), endian(0, R0, 24), exit_insn()], "EINVAL"),
)
def test_refused_registers(ue: UserEvents, program: Sequence[Piece], errno: str) -> None:
    """A register must be written before it is read, on every path; R10 is read-only."""
    assert Bpf(ue.process).load(program).errno == errno


@case(spec="kernel/bpf/verifier.c:check_stack_write, check_stack_read")
@variants(
    ("lowest", [st_mem(Size.DW, R10, -512, 0), *END], ""),
    ("too-low", [st_mem(Size.DW, R10, -520, 0), *END], "EACCES"),
    ("one-byte-too-low", [st_mem(Size.B, R10, -513, 0), *END], "EACCES"),
    ("highest", [st_mem(Size.B, R10, -1, 0), *END], ""),
    ("at-frame", [st_mem(Size.B, R10, 0, 0), *END], "EACCES"),
    ("above-frame", [st_mem(Size.DW, R10, 8, 0), *END], "EACCES"),
    ("read-at-frame", [ldx_mem(Size.DW, R0, R10, 0), exit_insn()], "EACCES"),
    ("read-too-low", [ldx_mem(Size.DW, R0, R10, -520), exit_insn()], "EACCES"),
    ("misaligned", [st_mem(Size.DW, R10, -12, 0), *END], "EACCES"),
    (
        "misaligned-read",
        [st_mem(Size.DW, R10, -8, 0), ldx_mem(Size.W, R0, R10, -6), exit_insn()],
        "EACCES",
    ),
    (
        "misaligned-add",
        [st_mem(Size.DW, R10, -8, 0), mov64_imm(R0, 0), stx_xadd(Size.W, R10, R0, -6), exit_insn()],
        "EACCES",
    ),
    (
        "moved-too-low",
        [mov64_reg(R2, R10), alu64_imm(Alu.ADD, R2, -512), st_mem(Size.DW, R2, -8, 0), *END],
        "EACCES",
    ),
    (
        "moved-and-back",
        [mov64_reg(R2, R10), alu64_imm(Alu.ADD, R2, -1024), st_mem(Size.DW, R2, 1016, 0), *END],
        "",
    ),
    ("address-in-4-bytes", [stx_mem(Size.W, R10, R1, -8), *END], "EACCES"),
    (
        "address-and-back",
        [
            stx_mem(Size.DW, R10, R1, -8),
            ldx_mem(Size.DW, R2, R10, -8),
            ldx_mem(Size.W, R0, R2, 0),
            exit_insn(),
        ],
        "",
    ),
    ("subtracted", [mov64_reg(R2, R10), alu64_imm(Alu.SUB, R2, 8), *END], "EACCES"),
    ("number-as-address", [mov64_imm(R2, 0), ldx_mem(Size.W, R0, R2, 0), exit_insn()], "EACCES"),
    ("number-stored-to", [mov64_imm(R2, 0), st_mem(Size.W, R2, 0, 0), *END], "EACCES"),
    (
        "spilled-number-as-address",
        [
            st_mem(Size.DW, R10, -8, 5),
            ldx_mem(Size.DW, R2, R10, -8),
            ldx_mem(Size.W, R0, R2, 0),
            exit_insn(),
        ],
        "EACCES",
    ),
    ("times-address", [mov64_reg(R2, R10), alu64_imm(Alu.MUL, R2, 2), *END], "EACCES"),
    ("address-of-32-bits", [mov64_reg(R2, R10), alu32_imm(Alu.ADD, R2, 2), *END], "EACCES"),
    ("addresses-added", [mov64_reg(R2, R10), alu64_reg(Alu.ADD, R2, R10), *END], "EACCES"),
    ("addresses-apart", [mov64_reg(R2, R10), alu64_reg(Alu.SUB, R2, R10), *END], ""),
)
def test_refused_stack(ue: UserEvents, program: Sequence[Piece], errno: str) -> None:
    """Loads and stores must stay in the 512 bytes below R10, aligned, through a pointer."""
    assert Bpf(ue.process).load(program).errno == errno


@case(spec="net/core/filter.c:sk_filter_is_valid_access", facilities="bpf_tracing")
@variants(
    ("length", 1, [ldx_mem(Size.W, R0, R1, 0), exit_insn()], ""),
    ("length-of-8-bytes", 1, [ldx_mem(Size.DW, R0, R1, 0), exit_insn()], "EACCES"),
    ("before", 1, [ldx_mem(Size.W, R0, R1, -4), exit_insn()], "EACCES"),
    ("far-behind", 1, [ldx_mem(Size.W, R0, R1, 8192), exit_insn()], "EACCES"),
    ("stored", 1, [mov64_imm(R0, 0), stx_mem(Size.W, R1, R0, 0), exit_insn()], "EACCES"),
    ("number-stored", 1, [st_mem(Size.W, R1, 0, 0), *END], "EACCES"),
    ("added", 1, [mov64_imm(R0, 0), stx_xadd(Size.W, R1, R0, 0), exit_insn()], "EACCES"),
    ("kprobe-register", 2, [ldx_mem(Size.DW, R0, R1, 160), exit_insn()], ""),
    ("kprobe-half-register", 2, [ldx_mem(Size.W, R0, R1, 164), exit_insn()], ""),
    ("kprobe-behind", 2, [ldx_mem(Size.DW, R0, R1, 168), exit_insn()], "EACCES"),
    ("kprobe-misaligned", 2, [ldx_mem(Size.DW, R0, R1, 4), exit_insn()], "EACCES"),
    ("kprobe-before", 2, [ldx_mem(Size.DW, R0, R1, -8), exit_insn()], "EACCES"),
)
def test_refused_context(ue: UserEvents, kind: int, program: Sequence[Piece], errno: str) -> None:
    """A program may read the context of its type only: registers for a kprobe."""
    assert Bpf(ue.process).load(program, kind).errno == errno
