"""Numbers and layouts of bpf.h, byte by byte."""

import struct

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.addresses import BUFFER, STRING
from conformance.client.bpf import Bpf

SPEC = "kernel/bpf/syscall.c:bpf_prog_load"
DOC = "include/uapi/linux/bpf.h@v4.1"
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

# A hash of four entries, with 4-byte keys and 8-byte values.
HASH = bytes.fromhex("01000000 04000000 08000000 04000000")
# r0 = 7; exit
SEVEN = bytes.fromhex("b7 00 0000 07000000  95 00 0000 00000000")


def elem(key: int, value: int, flags: int = 0) -> bytes:
    """The attributes of BPF_MAP_*_ELEM after map_fd, which is filled in later."""
    return struct.pack("<IIQQQ", 0, 0, key, value, flags)


@case(spec="__sys_bpf")
@doc("enum bpf_cmd counts create, lookup, update, delete and next key from 0")
def test_commands(ue: UserEvents) -> None:
    """The map commands are 0 to 4: create, lookup, update, delete, next key."""
    system, process = Bpf(ue.process), ue.process
    assert system.call(0, HASH, slot=20).errno == ""
    key, value = process.place(b"key."), process.place(b"a value.")
    attributes = elem(key, value)
    assert system.call(1, attributes, [(0, 20)]).errno == "ENOENT"
    assert system.call(2, attributes, [(0, 20)]).value == 0
    process.store(value, b"XXXXXXXX")
    assert system.call(1, attributes, [(0, 20)]).value == 0
    assert process.load(value, 8).data == b"a value."
    assert system.call(4, elem(0, value), [(0, 20)]).value == 0
    assert process.load(value, 8).data == b"key.lue."
    assert system.call(3, elem(key, 0), [(0, 20)]).value == 0
    assert system.call(3, elem(key, 0), [(0, 20)]).errno == "ENOENT"


@case(spec="__sys_bpf", doc="enum bpf_cmd ends somewhere")
def test_commands_unknown(ue: UserEvents) -> None:
    """An unknown command is EINVAL, after its attributes have been read."""
    system = Bpf(ue.process)
    assert system.call(1000, bytes(48)).errno == "EINVAL"
    assert system.call(1000, b"", size=4097).errno == "E2BIG"


@case(doc="BPF_PROG_LOAD is 5 and takes prog_type, insn_cnt, insns and license")
def test_program_of_bytes(ue: UserEvents) -> None:
    """Command 5 loads two 8-byte instructions, which return 7 as a socket filter."""
    system = Bpf(ue.process)
    code, license = ue.process.place(SEVEN), ue.process.place(b"GPL\0")
    assert system.call(5, struct.pack("<IIQQ", 1, 2, code, license), slot=20).errno == ""
    pair = system.pair()
    address = system.place(bytes(4), [(0, 20)])
    assert pair.set_option(address, 4).value == 0
    assert pair.send(b"0123456789").value == 10
    assert pair.receive().data == b"0123456"


@case(spec="map_create")
@doc("union bpf_attr has map_type, key_size, value_size and max_entries at first")
@variants({"map_type": 0, "key_size": 4, "value_size": 8, "max_entries": 12})
def test_map_create_offsets(ue: UserEvents, offset: int) -> None:
    """map_type at 0, key_size at 4, value_size at 8 and max_entries at 12 must not be 0."""
    system = Bpf(ue.process)
    assert system.call(0, HASH, slot=20).errno == ""
    without = HASH[:offset] + bytes(4) + HASH[offset + 4 :]
    assert system.call(0, without, slot=21).errno == "EINVAL"


@case(spec="map_update_elem, map_lookup_elem")
@doc("map_fd, then key, value or next_key, and flags, each aligned to 8 bytes")
def test_elem_offsets(ue: UserEvents) -> None:
    """The map is at 0, the key at 8, the value at 16, flags at 24; missing bytes are zero."""
    system, process = Bpf(ue.process), ue.process
    system.call(0, HASH, slot=20)
    key, value = process.place(b"key."), process.place(b"a value.")
    assert system.call(2, elem(key, value, 2), [(0, 20)], size=32).errno == "ENOENT"
    assert system.call(2, elem(key, value, 2), [(0, 20)], size=24).value == 0
    assert system.call(2, elem(key, value, 1), [(0, 20)], size=25).errno == "EEXIST"
    assert system.call(1, elem(key, value), [(0, 20)], size=16).errno == "EFAULT"
    assert system.call(3, elem(key, value), [(0, 20)], size=8).errno == "EFAULT"
    assert system.call(3, elem(key, value), [(0, 20)], size=16).value == 0


@case(doc="prog_type, insn_cnt, insns, license; the log came next, the version last")
def test_prog_load_offsets(ue: UserEvents) -> None:
    """The count is at 4, instructions at 8, the license at 16: shorter attributes lack them."""
    system, process = Bpf(ue.process), ue.process
    process.store(BUFFER, SEVEN)
    process.store(STRING, b"GPL\0")
    attributes = struct.pack("<IIQQIIQII", 1, 2, BUFFER, STRING, 0, 0, 0, 0, 0)
    assert system.call(5, attributes, slot=20).errno == ""
    assert system.call(5, attributes, size=44, slot=21).errno == ""
    assert system.call(5, attributes, size=24, slot=22).errno == ""
    assert system.call(5, attributes, size=16, slot=23).errno == "EFAULT"
    assert system.call(5, attributes, size=8, slot=24).errno == "EFAULT"
    without_count = ue.dated("bpf_license_read_last", since="E2BIG", before="EFAULT")
    assert system.call(5, attributes, size=4, slot=25).errno == without_count


@case(spec="kernel/bpf/core.c:___bpf_prog_run")
@doc("struct bpf_insn is an opcode, two registers of four bits, off and imm")
def test_instruction_fields(ue: UserEvents) -> None:
    """The low half of the second byte is the destination, off is at 2, imm at 4, both signed."""
    system, process = Bpf(ue.process), ue.process
    code = bytes.fromhex(
        "b7 03 0000 fbffffff"  # r3 = -5
        "7b 3a f8ff 00000000"  # *(u64 *)(r10 - 8) = r3
        "79 a4 f8ff 00000000"  # r4 = *(u64 *)(r10 - 8)
        "55 04 0300 fbffffff"  # if r4 != -5 goto +3
        "bf 40 0000 00000000"  # r0 = r4
        "07 00 0000 09000000"  # r0 += 9
        "95 00 0000 00000000"  # exit
        "b7 00 0000 00000000"  # r0 = 0
        "95 00 0000 00000000"  # exit
    )
    process.store(BUFFER, code)
    process.store(STRING, b"GPL\0")
    assert system.call(5, struct.pack("<IIQQ", 1, 9, BUFFER, STRING), slot=20).errno == ""
    pair = system.pair()
    pair.set_option(system.place(bytes(4), [(0, 20)]), 4)
    pair.send(b"0123456789")
    assert pair.receive().data == b"0123"
