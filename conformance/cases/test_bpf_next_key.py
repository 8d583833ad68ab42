"""BPF_MAP_GET_NEXT_KEY: walking maps."""

from __future__ import annotations

from conformance.cases.declare import case, variants
from conformance.sut.bpf import Bpf
from conformance.sut.user_events import UserEvents

ALWAYS = "5.18.."
HEADER = "include/uapi/linux/bpf.h@v4.1"
WALKING = f"{HEADER}: BPF_MAP_GET_NEXT_KEY looks a key up and gives the next, or an error"
HASH = "kernel/bpf/hashtab.c:htab_map_get_next_key"
ARRAY = "kernel/bpf/arraymap.c:array_map_get_next_key"
NEXT = 4


@case(
    "bpf.walk_array",
    spec=ARRAY,
    doc=WALKING,
    profiles=ALWAYS,
    isolation="none",
    facilities=("bpf",),
)
def test_walk_array(ue: UserEvents) -> None:
    """An array is walked from 0 to its last index, behind which is ENOENT."""
    map_ = Bpf(ue.process).array(max_entries=3)
    assert map_.keys() == [b"\0\0\0\0", b"\1\0\0\0", b"\2\0\0\0"]
    assert map_.next_key(b"\2\0\0\0").errno == "ENOENT"
    assert map_.next_key(b"\0\0\0\0").data == b"\1\0\0\0"


@case(
    "bpf.walk_array_outside",
    spec=ARRAY,
    doc=WALKING,
    profiles=ALWAYS,
    isolation="none",
    tier="full",
    facilities=("bpf",),
)
@variants("key", {"next": b"\3\0\0\0", "far": b"\0\0\1\0", "last": b"\xff\xff\xff\xff"})
def test_walk_array_outside(ue: UserEvents, key: bytes) -> None:
    """Behind an index that an array does not have comes its first."""
    map_ = Bpf(ue.process).array(max_entries=3)
    assert map_.next_key(key).data == b"\0\0\0\0"


@case(
    "bpf.walk_hash", spec=HASH, doc=WALKING, profiles=ALWAYS, isolation="none", facilities=("bpf",)
)
def test_walk_hash(ue: UserEvents) -> None:
    """Walking a hash gives each of its keys once, in an order of the kernel's own."""
    map_ = Bpf(ue.process).map(max_entries=8)
    for key in (b"one.", b"two.", b"3...", b"4...", b"5..."):
        map_.update(key, b"a value.")
    walked = map_.keys()
    assert sorted(walked) == [b"3...", b"4...", b"5...", b"one.", b"two."]
    assert len(walked) == 5
    assert map_.next_key(walked[-1]).errno == "ENOENT"


@case(
    "bpf.walk_hash_again",
    spec=HASH,
    doc=WALKING,
    profiles=ALWAYS,
    isolation="none",
    tier="full",
    facilities=("bpf",),
)
def test_walk_hash_again(ue: UserEvents) -> None:
    """A hash that has not changed is walked in the same order, from an unknown key too."""
    map_ = Bpf(ue.process).map(max_entries=8)
    for key in (b"one.", b"two.", b"3..."):
        map_.update(key, b"a value.")
    first, second, third = map_.keys()
    assert sorted([first, second, third]) == [b"3...", b"one.", b"two."]
    assert map_.next_key(b"none").data == first
    assert [map_.next_key(first).data, map_.next_key(second).data] == [second, third]


@case(
    "bpf.walk_empty", spec=HASH, doc=WALKING, profiles=ALWAYS, isolation="none", facilities=("bpf",)
)
def test_walk_empty(ue: UserEvents) -> None:
    """An empty hash has no next key, and the memory for it is left alone."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map()
    room = process.place(b"untouched")
    assert map_.call(NEXT, key=0, value=room).errno == "ENOENT"
    assert map_.next_key(b"key.").errno == "ENOENT"
    assert process.load(room, 9).data == b"untouched"


@case(
    "bpf.walk_and_delete",
    spec=HASH,
    doc=WALKING,
    profiles=ALWAYS,
    isolation="none",
    tier="full",
    facilities=("bpf",),
)
def test_walk_and_delete(ue: UserEvents) -> None:
    """Taking the first key and deleting it, time after time, empties a hash."""
    map_ = Bpf(ue.process).map()
    for key in (b"one.", b"two.", b"3..."):
        map_.update(key, b"a value.")
    found = []
    for _ in range(3):
        key = map_.next_key(None).data or b""
        assert map_.delete(key).value == 0
        found.append(key)
    assert sorted(found) == [b"3...", b"one.", b"two."]
    assert map_.next_key(None).errno == "ENOENT"


@case(
    "bpf.walk_in_place",
    spec=HASH,
    doc=WALKING,
    profiles=ALWAYS,
    isolation="none",
    tier="full",
    facilities=("bpf",),
)
def test_walk_in_place(ue: UserEvents) -> None:
    """The next key may be stored over the key that was given."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.array(max_entries=3)
    key = process.place(b"\0\0\0\0")
    assert map_.call(NEXT, key=key, value=key).value == 0
    assert process.load(key, 4).data == b"\1\0\0\0"
    assert map_.call(NEXT, key=key, value=key).value == 0
    assert map_.call(NEXT, key=key, value=key).errno == "ENOENT"
    assert process.load(key, 4).data == b"\2\0\0\0"
