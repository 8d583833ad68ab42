"""Kprobes, and BPF programs on them.

The probed function, user_events_write(), is called by write(2) of user_events_data only: the case
alone decides when the kprobe is hit.
"""

from conformance.abi.bpf import Helper, ProgramType
from conformance.client.bpf import Bpf, Map
from conformance.client.bpf_program import Program
from conformance.client.data_file import DataFile
from conformance.client.perf import COUNTING, PERIOD, PerfAttr, PerfEvent, open_perf
from conformance.client.process import Process
from conformance.client.tracefs import KPROBES
from conformance.client.user_events import UserEvents
from conformance.ops import bpf_assembler
from conformance.ops.bpf_assembler import Piece
from conformance.ops.bpf_opcodes import R0, R1, R2, R10, Alu, Jump, Size

FUNCTION = "user_events_write"
# The record of a kprobe contains a kernel address, so samples have no raw data.
PLAIN = PerfAttr(sample_type=PERIOD)
SAMPLE = "SAMPLE misc 1 size 16 period 1"
KEY = bytes(4)
SOCKET_FILTER, KPROBE, TRACEPOINT = (
    ProgramType.SOCKET_FILTER,
    ProgramType.KPROBE,
    ProgramType.TRACEPOINT,
)


def counting(counts: Map, answer: int) -> list[Piece]:
    """A program that adds 1 to the first element of an array, and returns ``answer``."""
    return [
        bpf_assembler.st_mem(Size.W, R10, -4, 0),
        bpf_assembler.mov64_reg(R2, R10),
        bpf_assembler.alu64_imm(Alu.ADD, R2, -4),
        bpf_assembler.ld_map_fd(R1, counts.slot),
        bpf_assembler.call(Helper.MAP_LOOKUP_ELEM),
        bpf_assembler.jmp_imm(Jump.JEQ, R0, 0, "end"),
        bpf_assembler.mov64_imm(R1, 1),
        bpf_assembler.stx_xadd(Size.DW, R0, R1, 0),
        bpf_assembler.Label("end"),
        bpf_assembler.mov64_imm(R0, answer),
        bpf_assembler.exit_insn(),
    ]


def returning(answer: int) -> list[Piece]:
    """A program that only returns a value."""
    return [bpf_assembler.mov64_imm(R0, answer), bpf_assembler.exit_insn()]


def load_counting(
    system: Bpf, kind: ProgramType = KPROBE, *, answer: int = 1
) -> tuple[Program, Map]:
    """Load a counting program; returns the program and its array."""
    counts = system.array()
    return system.load(counting(counts, answer), kind), counts


def runs_of(counts: Map) -> int:
    """Number of runs of a counting program."""
    return int.from_bytes(counts.value(KEY) or b"", "little")


def add_kprobe(ue: UserEvents, stem: str = "k") -> str:
    """Create a kprobe with a name of the case's own; returns the name."""
    ue.tracefs.add_kprobe(ue.name(stem), FUNCTION)
    return ue.name(stem)


def listen_to(process: Process, name: str, attr: PerfAttr = COUNTING) -> PerfEvent:
    """Open a perf event on a kprobe, by default one that only counts."""
    return open_perf(process, name, attr, system=KPROBES)


def call_function(data: DataFile) -> None:
    """Call the probed function once: write(2) of an index that is not registered."""
    assert data.write(b"\0\0\0\0").errno == "ENOENT"
