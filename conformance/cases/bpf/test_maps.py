"""BPF_MAP_CREATE: map types, attributes, and the lifetime of a map."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.client.addresses import PAGE
from conformance.client.bpf import Bpf

SPEC = "kernel/bpf/syscall.c:bpf_map_release"
DOC = (
    "include/uapi/linux/bpf.h@v4.1: BPF_MAP_CREATE makes a map of a type and attributes, or "
    "is an error"
)
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

NOWHERE = 0x1000
HASH = bytes.fromhex("01000000 04000000 08000000 04000000")
MAX = 0xFFFFFFFF


@case(spec="map_create")
@variants(("hash", 1, None), ("array", 2, bytes(8)))
def test_map_create(ue: UserEvents, kind: int, found: bytes | None) -> None:
    """A hash, type 1, starts empty; an array, type 2, has all its elements, zeroed."""
    map_ = Bpf(ue.process).map(kind)
    assert map_.errno == ""
    assert map_.value(b"\3\0\0\0") == found


@case
@spec("kernel/bpf/hashtab.c:htab_map_alloc_check; kernel/bpf/arraymap.c:array_map_alloc_check")
@variants(
    ("unspec", (0, 4, 8, 4), "EINVAL"),
    ("unknown", (0xFFFF, 4, 8, 4), "EINVAL"),
    ("last-number", (MAX, 4, 8, 4), "EINVAL"),
    ("hash-no-key", (1, 0, 8, 4), "EINVAL"),
    ("hash-no-value", (1, 4, 0, 4), "EINVAL"),
    ("hash-no-entries", (1, 4, 8, 0), "EINVAL"),
    ("hash-value-too-large", (1, 4, MAX, 4), "E2BIG"),
    ("hash-key-too-large", (1, MAX, 8, 4), "E2BIG"),
    ("hash-large-value-no-entries", (1, 4, MAX, 0), "EINVAL"),
    ("array-key-3", (2, 3, 8, 4), "EINVAL"),
    ("array-key-8", (2, 8, 8, 4), "EINVAL"),
    ("array-no-key", (2, 0, 8, 4), "EINVAL"),
    ("array-no-value", (2, 4, 0, 4), "EINVAL"),
    ("array-no-entries", (2, 4, 8, 0), "EINVAL"),
    ("array-value-too-large", (2, 4, MAX, 4), "E2BIG"),
    ("array-large-value-key-8", (2, 8, MAX, 4), "EINVAL"),
    ("unspec-nothing", (0, 0, 0, 0), "EINVAL"),
)
def test_map_create_refused(ue: UserEvents, members: tuple[int, int, int, int], errno: str) -> None:
    """An unknown type, or an invalid size or count, creates no map."""
    kind, key_size, value_size, max_entries = members
    map_ = Bpf(ue.process).map(
        kind, key_size=key_size, value_size=value_size, max_entries=max_entries
    )
    assert map_.errno == errno


@case
@spec("kernel/bpf/hashtab.c:htab_map_alloc_check; kernel/bpf/arraymap.c:array_map_alloc_check")
@variants(("1-1", 1, 1), ("3-5", 3, 5), ("16-100", 16, 100), ("500-9", 500, 9))
def test_map_sizes(ue: UserEvents, key_size: int, value_size: int) -> None:
    """Keys and values of a hash have exactly the requested sizes."""
    map_ = Bpf(ue.process).map(key_size=key_size, value_size=value_size, max_entries=2)
    keys = [b"k" * (key_size - 1) + end for end in (b"1", b"2")]
    for key in keys:
        assert map_.update(key, key[-1:] * value_size).value == 0
    assert [map_.value(key) for key in keys] == [b"1" * value_size, b"2" * value_size]


@case(spec="bpf_check_uarg_tail_zero")
@variants(
    ("zeros", 512, b"", ""),
    ("byte-behind", 1024, b"\1", "E2BIG"),
    ("page", 4096, b"", ""),
    ("page-byte-behind", 4096, b"\1", "E2BIG"),
    ("longer-than-a-page", 4097, b"", "E2BIG"),
    ("negative", 0xFFFFFFFF, b"", "E2BIG"),
    ("none", 0, b"", "EINVAL"),
    ("one-byte", 1, b"", "EINVAL"),
    ("no-entries", 12, b"", "EINVAL"),
    ("no-more-than-there-was", 16, b"", ""),
)
def test_attributes_longer(ue: UserEvents, size: int, tail: bytes, errno: str) -> None:
    """Attributes may be longer than the kernel's, up to a page, if zero; missing ones are zero."""
    attributes = HASH.ljust(min(size, 4100) - len(tail), b"\0") + tail
    assert Bpf(ue.process).call(0, attributes, size=size, slot=20).errno == errno


@case(spec="CHECK_ATTR")
def test_attributes_unused(ue: UserEvents) -> None:
    """A byte that only other commands use is EINVAL, not E2BIG."""
    system = Bpf(ue.process)
    assert system.call(0, HASH.ljust(143, b"\0") + b"\1", slot=20).errno == "EINVAL"
    assert system.call(0, HASH.ljust(143, b"\0") + b"\0", slot=21).errno == ""


@case(spec="bpf_check_uarg_tail_zero")
def test_attributes_unreadable(ue: UserEvents) -> None:
    """Attributes that cannot be read completely are EFAULT; a size too large is E2BIG first."""
    system, process = Bpf(ue.process), ue.process
    short = process.place(HASH)
    arguments = [(NOWHERE, 16), (short, 16), (short, 17), (short, 1024), (NOWHERE, 4097)]
    errors = [
        process.run(system.operation(0, address, size, 20 + i)).errno
        for i, (address, size) in enumerate(arguments)
    ]
    assert errors == ["EFAULT", "", "EFAULT", "EFAULT", "E2BIG"]


@case(spec="map_create, bpf_prog_load", tier="quick")
@doc("silent about rights; sysctl unprivileged_bpf_disabled is 2 from the start")
def test_ordinary_user(ue: UserEvents) -> None:
    """An unprivileged user creates no maps and loads no programs."""
    system = Bpf(ue.process)
    ue.process.setuid()
    assert (system.map().errno, system.array().errno) == ("EPERM", "EPERM")
    assert system.load([]).errno == "EPERM"


@case(doc="a map is deleted when its descriptor is closed")
def test_map_ends_with_descriptor(ue: UserEvents) -> None:
    """Closing the only descriptor of a map releases it: EBADF for every command."""
    map_ = Bpf(ue.process).map()
    assert map_.update(b"key.", b"a value.").value == 0
    assert map_.close().value == 0
    assert map_.lookup(b"key.").errno == "EBADF"
    assert map_.update(b"key.", b"a value.").errno == "EBADF"
    assert (map_.delete(b"key.").errno, map_.next_key(b"key.").errno) == ("EBADF", "EBADF")
    assert map_.next_key(None).errno == "EBADF"


@case(doc="a map is deleted when its descriptor is closed")
def test_map_kept_by_duplicate(ue: UserEvents) -> None:
    """A second descriptor holds a map and its content when the first is closed."""
    map_ = Bpf(ue.process).map()
    map_.update(b"key.", b"a value.")
    copy = map_.dup()
    map_.close()
    assert map_.lookup(b"key.").errno == "EBADF"
    assert copy.value(b"key.") == b"a value."


@case(doc="a map is deleted when its descriptor is closed")
def test_map_kept_by_child(ue: UserEvents) -> None:
    """A forked child shares the map, which outlives its parent's descriptor."""
    map_ = Bpf(ue.process).map()
    map_.update(b"key.", b"a value.")
    inherited = map_.by(Bpf(ue.fork(ue.process)))
    assert inherited.update(b"key2", b"another.").value == 0
    assert map_.value(b"key2") == b"another."
    map_.close()
    assert inherited.value(b"key.") == b"a value."


@case(spec="map_create")
def test_maps_are_apart(ue: UserEvents) -> None:
    """Two maps with the same attributes are independent."""
    system = Bpf(ue.process)
    one, other = system.map(), system.map()
    one.update(b"key.", b"a value.")
    assert (other.lookup(b"key.").errno, other.next_key(None).errno) == ("ENOENT", "ENOENT")


@case(spec="bpf_map_fops, bpf_dummy_read")
def test_map_is_no_file(ue: UserEvents) -> None:
    """A map descriptor supports neither read, write nor ioctl."""
    map_ = Bpf(ue.process).map()
    assert (map_.read(PAGE).errno, map_.write(b"key.").errno) == ("EINVAL", "EINVAL")
    assert map_.ioctl(1).errno == "ENOTTY"
