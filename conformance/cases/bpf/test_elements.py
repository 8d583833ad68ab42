"""Map elements: lookup, update, delete, and their errors."""

import mmap

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.bpf import Bpf
from conformance.client.tracefs import DATA

SPEC = "kernel/bpf/hashtab.c:htab_map_update_elem"
DOC = "include/uapi/linux/bpf.h@v4.1: commands about elements answer zero or a negative error"
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

NOWHERE = 0x1000
LOOK, SET, DELETE, NEXT = 1, 2, 3, 4
each_command = variants(("lookup", LOOK), ("update", SET), ("delete", DELETE), ("next-key", NEXT))


@case(doc="BPF_ANY, BPF_NOEXIST and BPF_EXIST are 0, 1 and 2; the rest is reserved")
def test_update_any(ue: UserEvents) -> None:
    """BPF_ANY creates an element or replaces the existing one."""
    map_ = Bpf(ue.process).map()
    assert map_.update(b"key.", b"one.....", 0).value == 0
    assert map_.value(b"key.") == b"one....."
    assert map_.update(b"key.", b"two.....", 0).value == 0
    assert map_.value(b"key.") == b"two....."


@case(doc="message of its flags: EEXIST and ENOENT where BPF_NOEXIST or BPF_EXIST fail")
def test_update_noexist(ue: UserEvents) -> None:
    """BPF_NOEXIST creates an element, and is EEXIST for an existing one, which stays."""
    map_ = Bpf(ue.process).map()
    assert map_.update(b"key.", b"one.....", 1).value == 0
    assert map_.update(b"key.", b"two.....", 1).errno == "EEXIST"
    assert map_.value(b"key.") == b"one....."


@case(doc="message of its flags: EEXIST and ENOENT where BPF_NOEXIST or BPF_EXIST fail")
def test_update_exist(ue: UserEvents) -> None:
    """BPF_EXIST replaces an element, and is ENOENT for a missing one, which is not created."""
    map_ = Bpf(ue.process).map()
    assert map_.update(b"key.", b"one.....", 2).errno == "ENOENT"
    assert map_.lookup(b"key.").errno == "ENOENT"
    map_.update(b"key.", b"one.....", 0)
    assert map_.update(b"key.", b"two.....", 2).value == 0
    assert map_.value(b"key.") == b"two....."


@case(doc="BPF_ANY, BPF_NOEXIST and BPF_EXIST are 0, 1 and 2; the rest is reserved")
@variants(
    ("3", 3),
    ("4", 4),
    ("7", 7),
    ("bit-16", 1 << 16),
    ("bit-31", 1 << 31),
    ("bit-62", 1 << 62),
    names="flags",
)
@variants({"hash": 1, "array": 2}, names="kind")
def test_update_reserved_flags(ue: UserEvents, kind: int, flags: int) -> None:
    """Unknown flags are EINVAL, and so is NOEXIST together with EXIST."""
    map_ = Bpf(ue.process).map(kind)
    assert map_.update(b"\1\0\0\0", b"a value.", flags).errno == "EINVAL"
    assert map_.value(b"\1\0\0\0") == (None if kind == 1 else bytes(8))


@case(spec="alloc_htab_elem")
def test_update_full(ue: UserEvents) -> None:
    """One element too many is E2BIG; existing ones can be replaced, and a deletion makes room."""
    map_ = Bpf(ue.process).map(max_entries=2)
    assert map_.update(b"one.", b"1.......").value == 0
    assert map_.update(b"two.", b"2.......").value == 0
    assert map_.update(b"more", b"3.......").errno == "E2BIG"
    assert map_.update(b"more", b"3.......", 1).errno == "E2BIG"
    assert map_.update(b"more", b"3.......", 2).errno == "ENOENT"
    assert map_.update(b"two.", b"4.......").value == 0
    assert map_.update(b"two.", b"5.......", 1).errno == "EEXIST"
    assert map_.delete(b"one.").value == 0
    assert map_.update(b"more", b"6.......").value == 0
    assert [map_.value(key) for key in (b"one.", b"two.", b"more")] == [
        None,
        b"4.......",
        b"6.......",
    ]


@case(spec="kernel/bpf/arraymap.c:array_map_update_elem")
@doc("BPF_ANY, BPF_NOEXIST and BPF_EXIST are 0, 1 and 2; the rest is reserved")
def test_update_array(ue: UserEvents) -> None:
    """All elements of an array exist: NOEXIST is EEXIST, EXIST and ANY replace."""
    map_ = Bpf(ue.process).array()
    assert map_.update(b"\0\0\0\0", b"one.....", 1).errno == "EEXIST"
    assert map_.value(b"\0\0\0\0") == bytes(8)
    assert map_.update(b"\0\0\0\0", b"two.....", 2).value == 0
    assert map_.value(b"\0\0\0\0") == b"two....."
    assert map_.update(b"\0\0\0\0", b"three...", 0).value == 0
    assert map_.value(b"\0\0\0\0") == b"three..."
    assert map_.value(b"\1\0\0\0") == bytes(8)


@case(spec="kernel/bpf/arraymap.c:array_map_update_elem, array_map_lookup_elem")
@variants({"next": b"\4\0\0\0", "high-byte": b"\0\0\0\1", "last": b"\xff\xff\xff\xff"})
def test_array_bounds(ue: UserEvents, key: bytes) -> None:
    """An index past the end of an array is ENOENT for lookup and E2BIG for update."""
    map_ = Bpf(ue.process).array(max_entries=4)
    assert map_.update(b"\3\0\0\0", b"the last").value == 0
    assert map_.lookup(key).errno == "ENOENT"
    for flags in (0, 1, 2):
        assert map_.update(key, b"a value.", flags).errno == "E2BIG"
    assert map_.value(b"\3\0\0\0") == b"the last"


@case(spec="kernel/bpf/arraymap.c:array_map_delete_elem")
def test_array_delete(ue: UserEvents) -> None:
    """Deleting an element of an array is EINVAL, whatever the key."""
    map_ = Bpf(ue.process).array()
    map_.update(b"\0\0\0\0", b"a value.")
    assert map_.delete(b"\0\0\0\0").errno == "EINVAL"
    assert map_.delete(b"\x09\0\0\0").errno == "EINVAL"
    assert map_.value(b"\0\0\0\0") == b"a value."


@case(spec="kernel/bpf/syscall.c:map_lookup_elem, map_update_elem, map_delete_elem")
def test_lookup_missing(ue: UserEvents) -> None:
    """A missing element is ENOENT, and the value buffer is not written."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map()
    map_.update(b"key1", b"a value.")
    key, value = process.place(b"key2"), process.place(b"untouched")
    assert map_.call(LOOK, key=key, value=value).errno == "ENOENT"
    assert process.load(value, 9).data == b"untouched"
    process.store(key, b"key1")
    assert map_.call(LOOK, key=key, value=value).value == 0
    assert process.load(value, 9).data == b"a value.d"


@case(spec="htab_map_delete_elem")
def test_delete(ue: UserEvents) -> None:
    """A deleted element is gone, deleting it again is ENOENT, the others stay."""
    map_ = Bpf(ue.process).map()
    map_.update(b"one.", b"1.......")
    map_.update(b"two.", b"2.......")
    assert map_.delete(b"one.").value == 0
    assert (map_.lookup(b"one.").errno, map_.delete(b"one.").errno) == ("ENOENT", "ENOENT")
    assert map_.value(b"two.") == b"2......."
    assert map_.update(b"one.", b"3.......", 1).value == 0
    assert map_.value(b"one.") == b"3......."


@case(spec="kernel/bpf/syscall.c:__bpf_map_get")
@each_command
def test_bad_descriptor(ue: UserEvents, command: int) -> None:
    """A closed descriptor is EBADF, whatever is wrong with key and value."""
    system = Bpf(ue.process)
    for number in (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"):
        assert system.call(command, number + bytes(44)).errno == "EBADF"


@case(spec="kernel/bpf/syscall.c:__bpf_map_get")
@each_command
def test_not_a_map(ue: UserEvents, command: int) -> None:
    """The descriptor of a file, a socket or a program is no map: EINVAL."""
    system = Bpf(ue.process)
    _, file = ue.process.open(DATA)
    slots = (file, system.pair().slot, system.load_returning_7().slot)
    assert [system.call(command, bytes(48), [(0, slot)]).errno for slot in slots] == ["EINVAL"] * 3


@case(spec="kernel/bpf/syscall.c:map_lookup_elem, map_update_elem, map_delete_elem")
@each_command
def test_key_unreadable(ue: UserEvents, command: int) -> None:
    """A key that cannot be read completely is EFAULT."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map()
    value = process.place(b"a value.")
    assert (
        map_.call(command, key=NOWHERE, value=0 if command == DELETE else value).errno == "EFAULT"
    )
    cut = process.place(b"key")
    assert map_.call(command, key=cut, value=0 if command == DELETE else value).errno == "EFAULT"
    assert map_.next_key(None).errno == "ENOENT"


@case(spec="kernel/bpf/syscall.c:map_lookup_elem, map_update_elem, map_delete_elem")
def test_value_unreachable(ue: UserEvents) -> None:
    """An unreadable value is EFAULT, and so is an unwritable value buffer."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map()
    key = process.place(b"key.")
    cut = process.place(b"a value")
    assert map_.call(SET, key=key, value=NOWHERE).errno == "EFAULT"
    assert map_.call(SET, key=key, value=cut).errno == "EFAULT"
    assert map_.lookup(b"key.").errno == "ENOENT"
    map_.update(b"key.", b"a value.")
    read_only = process.map(protection=mmap.PROT_READ)
    assert map_.call(LOOK, key=key, value=read_only).errno == "EFAULT"
    assert map_.call(LOOK, key=key, value=0).errno == "EFAULT"
    assert map_.call(NEXT, key=0, value=read_only).errno == "EFAULT"
    assert map_.value(b"key.") == b"a value."


@case(spec="kernel/bpf/syscall.c:CHECK_ATTR")
@variants(
    ("delete-value", DELETE, 16),
    ("delete-flags", DELETE, 24),
    ("next-key-flags", NEXT, 24),
    ("lookup-flags", LOOK, 24),
    ("lookup-behind", LOOK, 32),
    ("update-behind", SET, 32),
    ("update-last", SET, 47),
)
def test_elem_unused(ue: UserEvents, command: int, unused: int) -> None:
    """Attribute bytes that a command does not use must be zero; else EINVAL."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map()
    map_.update(b"key.", b"a value.")
    places = process.place(b"key.").to_bytes(8, "little") + process.place(bytes(8)).to_bytes(
        8, "little"
    )
    good = bytes(8) + places + bytes(24)
    good = good[:16] + bytes(32) if command == DELETE else good
    bad = good[:unused] + b"\x08" + good[unused + 1 :]
    assert system.call(command, bad, [(0, map_.slot)]).errno == "EINVAL"
    assert system.call(command, good, [(0, map_.slot)]).errno == (
        "ENOENT" if command == NEXT else ""
    )


@case(spec="kernel/bpf/syscall.c:map_lookup_elem, map_update_elem, map_delete_elem")
def test_errors_in_order(ue: UserEvents) -> None:
    """Order of checks: unused bytes, the descriptor, the key, the value, the element."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map(max_entries=1)
    missing = process.place(b"miss")
    no_fd = b"\xff\xff\xff\xff" + bytes(20)
    assert system.call(DELETE, no_fd + b"\1" + bytes(23)).errno == "EINVAL"
    assert system.call(DELETE, no_fd + bytes(24)).errno == "EBADF"
    assert map_.call(LOOK, key=missing, value=NOWHERE).errno == "ENOENT"
    map_.update(b"key.", b"a value.")
    assert map_.call(SET, key=NOWHERE, value=NOWHERE, flags=1).errno == "EFAULT"
    assert map_.call(SET, key=missing, value=NOWHERE).errno == "EFAULT"
    assert map_.update(b"miss", b"a value.").errno == "E2BIG"
    assert map_.update(b"miss", b"a value.", 3).errno == "EINVAL"
    array = system.array()
    assert array.call(DELETE, key=NOWHERE).errno == "EFAULT"
    assert array.update(b"\4\0\0\0", b"a value.", 3).errno == "EINVAL"
    assert array.update(b"\4\0\0\0", b"a value.", 1).errno == "E2BIG"
