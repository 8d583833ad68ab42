"""BPF_PROG_LOAD: types, licenses, attaching and lifetime of programs."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.addresses import BUFFER, STRING
from conformance.client.bpf import Bpf
from conformance.client.tracefs import DATA
from conformance.ops.bpf_assembler import (
    Label,
    Piece,
    alu64_imm,
    call,
    exit_insn,
    jmp_imm,
    ld_map_fd,
    ldx_mem,
    mov64_imm,
    mov64_reg,
    st_mem,
    stx_mem,
)
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R10, Alu, Jump, Size

SPEC = "kernel/bpf/syscall.c:bpf_prog_load"
DOC = (
    "include/uapi/linux/bpf.h@v4.1: BPF_PROG_LOAD verifies and loads a program, and gives a "
    "descriptor"
)
SOCKET = "include/uapi/asm-generic/socket.h@v4.1: SO_ATTACH_BPF is 50, a program's descriptor"
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

SOCKET_FILTER, KPROBE = 1, 2
NOWHERE = 0x1000
SEVEN = [mov64_imm(R0, 7), exit_insn()]
# As a kprobe program: bpf_probe_read() of eight bytes of kernel memory to the stack.
READS = [
    mov64_reg(R1, R10),
    alu64_imm(Alu.ADD, R1, -8),
    mov64_imm(R2, 8),
    mov64_imm(R3, 0),
    call(4),
    mov64_imm(R0, 0),
    exit_insn(),
]


@case(spec="find_prog_type", facilities="bpf_tracing")
@doc("enum bpf_prog_type has unspec, socket filter and kprobe")
@variants(
    ("unspec", 0, "EINVAL"),
    ("socket-filter", 1, ""),
    ("kprobe", 2, ""),
    ("unknown", 0xFFFF, "EINVAL"),
    ("last-number", 0xFFFFFFFF, "EINVAL"),
)
def test_program_types(ue: UserEvents, kind: int, errno: str) -> None:
    """A program is a socket filter, type 1, or for kprobes, type 2; type 0 is invalid."""
    assert Bpf(ue.process).load(SEVEN, kind).errno == errno


@case
@variants(
    ("none", 0, "E2BIG"),
    ("too-many", 1_000_001, "E2BIG"),
    ("last-number", 0xFFFFFFFF, "E2BIG"),
    ("one-less", 1, "EINVAL"),
)
def test_program_length(ue: UserEvents, count: int, errno: str) -> None:
    """No instructions, or more than a million, are E2BIG; the last one must end the program."""
    assert Bpf(ue.process).load(SEVEN, insn_cnt=count).errno == errno


@case
def test_program_unreadable(ue: UserEvents) -> None:
    """Instructions or a license that cannot be read completely are EFAULT."""
    system, process = Bpf(ue.process), ue.process
    process.store(BUFFER, b"\xb7\0\0\0\7\0\0\0\x95\0\0\0\0\0\0\0")
    process.store(STRING, b"GPL\0")
    code, cut = process.place(b"\xb7\0\0\0\7\0\0\0"), process.place(b"GPL")

    def load(instructions: int, license: int) -> str:
        attributes = (1).to_bytes(4, "little") + (2).to_bytes(4, "little")
        attributes += instructions.to_bytes(8, "little") + license.to_bytes(8, "little")
        return system.call(5, attributes, slot=process.free_slot()).errno

    assert (load(BUFFER, STRING), load(NOWHERE, STRING)) == ("", "EFAULT")
    assert (load(code, STRING), load(BUFFER, NOWHERE)) == ("EFAULT", "EFAULT")
    assert load(BUFFER, cut) == "EFAULT"


@case(spec="include/linux/license.h:license_is_gpl_compatible", facilities="bpf_tracing")
@doc("a license is given with each program")
@variants(
    ("gpl", b"GPL\0", ""),
    ("proprietary", b"Proprietary\0", "EINVAL"),
    ("gpl-v2", b"GPL v2\0", ""),
    ("dual", b"Dual BSD/GPL\0", ""),
    ("empty", b"\0", "EINVAL"),
    ("longer", b"GPL version\0", "EINVAL"),
    ("lower-case", b"gpl\0", "EINVAL"),
    ("very-long", b"G" * 300 + b"\0", "EINVAL"),
)
def test_program_license(ue: UserEvents, license: bytes, errno: str) -> None:
    """Helper 4 needs a GPL-compatible license, else EINVAL; without it any license works."""
    system = Bpf(ue.process)
    assert system.load(READS, KPROBE, license=license).errno == errno
    assert system.load(SEVEN, KPROBE, license=license).errno == ""
    assert system.load(SEVEN, SOCKET_FILTER, license=license).errno == ""


@case(doc="programs of type kprobe, whose kern_version is checked", facilities="bpf_tracing")
@variants({"kprobe": KPROBE, "socket-filter": SOCKET_FILTER})
def test_kern_version(ue: UserEvents, kind: int) -> None:
    """The kernel version is no longer checked: any number loads."""
    system = Bpf(ue.process)
    for version in (0, 1, 0x040100, 0xFFFFFFFF):
        assert system.load(SEVEN, kind, kern_version=version).errno == ""


@case(spec="net/core/filter.c:sk_attach_bpf", doc=SOCKET, facilities="bpf_tracing")
def test_attach_refused(ue: UserEvents) -> None:
    """Attaching anything but a socket filter is EINVAL, and a closed descriptor EBADF."""
    system, process = Bpf(ue.process), ue.process
    pair = system.pair()
    _, file = process.open(DATA)
    for slot in (system.map().slot, file, pair.slot, system.load(SEVEN, KPROBE).slot):
        assert pair.set_option(system.place(bytes(4), [(0, slot)]), 4).errno == "EINVAL"
    assert pair.set_option(system.place(b"\xff\xff\xff\xff"), 4).errno == "EBADF"
    assert pair.set_option(NOWHERE, 4).errno == "EFAULT"
    good = system.load(SEVEN)
    assert pair.set_option(system.place(bytes(4), [(0, good.slot)]), 3).errno == "EINVAL"
    assert pair.pass_through(b"datagram") == b"datagram"
    assert pair.set_option(system.place(bytes(4), [(0, good.slot)]), 4).value == 0
    assert pair.pass_through(b"datagram") == b"datagra"


@case(spec="net/core/filter.c:sk_attach_bpf", doc=SOCKET)
def test_attach_replaces(ue: UserEvents) -> None:
    """A second filter replaces the first, and filters one direction only."""
    system = Bpf(ue.process)
    pair = system.pair()
    assert pair.pass_through(b"datagram") == b"datagram"
    pair.attach(system.load(SEVEN))
    assert pair.pass_through(b"datagram") == b"datagra"
    pair.attach(system.load([mov64_imm(R0, 2), exit_insn()]))
    assert pair.pass_through(b"datagram") == b"da"
    assert pair.reversed().pass_through(b"datagram") == b"datagram"


@case(spec="bpf_prog_release")
def test_program_kept_by_socket(ue: UserEvents) -> None:
    """A socket keeps its filter after the program's descriptor is closed."""
    system = Bpf(ue.process)
    program = system.load(SEVEN)
    pair, other = system.pair(), system.pair()
    pair.attach(program)
    system.close(program)
    assert pair.pass_through(b"datagram") == b"datagra"
    assert other.attach(program).errno == "EBADF"


def counting(slot: int) -> list[Piece]:
    """A program that increments element 0 of an array, and returns that many bytes."""
    return [
        st_mem(Size.W, R10, -4, 0),
        mov64_reg(R2, R10),
        alu64_imm(Alu.ADD, R2, -4),
        ld_map_fd(R1, slot),
        call(1),
        jmp_imm(Jump.JEQ, R0, 0, "out"),
        ldx_mem(Size.DW, R1, R0, 0),
        alu64_imm(Alu.ADD, R1, 1),
        stx_mem(Size.DW, R0, R1, 0),
        mov64_reg(R0, R1),
        Label("out"),
        exit_insn(),
    ]


@case(spec="kernel/bpf/verifier.c:bpf_map_inc")
@doc("a map is deleted when its descriptor is closed")
def test_map_kept_by_program(ue: UserEvents) -> None:
    """A map whose descriptor is closed lives on in the programs that use it."""
    system = Bpf(ue.process)
    map_ = system.array()
    map_.update(b"\0\0\0\0", b"\1\0\0\0\0\0\0\0")
    program = system.load(counting(map_.slot))
    assert program.errno == ""
    map_.close()
    pair = system.pair()
    pair.attach(program)
    system.close(program)
    assert [pair.pass_through(b"datagram") for _ in range(3)] == [b"da", b"dat", b"data"]


@case(spec="kernel/bpf/arraymap.c:array_map_lookup_elem")
@doc("maps share data between kernel and user space")
def test_map_shared_with_program(ue: UserEvents) -> None:
    """User space looks up what a program stored, and the program finds what user space stored."""
    system = Bpf(ue.process)
    map_ = system.array()
    pair = system.pair()
    pair.attach(system.load(counting(map_.slot)))
    assert pair.pass_through(b"datagram") == b"d"
    assert map_.value(b"\0\0\0\0") == b"\1\0\0\0\0\0\0\0"
    map_.update(b"\0\0\0\0", b"\4\0\0\0\0\0\0\0")
    assert pair.pass_through(b"datagram") == b"datag"
    assert map_.value(b"\0\0\0\0") == b"\5\0\0\0\0\0\0\0"


@case(spec="kernel/bpf/core.c:___bpf_prog_run")
def test_program_run_twice(ue: UserEvents) -> None:
    """One program may filter several sockets, and two programs may share a map."""
    system = Bpf(ue.process)
    map_ = system.array()
    one, other = system.load(counting(map_.slot)), system.load(counting(map_.slot))
    pairs = [system.pair() for _ in range(3)]
    for pair, program in zip(pairs, (one, one, other), strict=True):
        pair.attach(program)
    assert [pair.pass_through(b"datagram") for pair in pairs] == [b"d", b"da", b"dat"]
