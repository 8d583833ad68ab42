"""BPF_MAP_GET_NEXT_KEY: iterating over maps."""

from conformance.cases.case import UserEvents, surface, variants
from conformance.client.bpf import Bpf, Map
from conformance.client.process import Process

SPEC = "kernel/bpf/hashtab.c:htab_map_get_next_key"
DOC = (
    "include/uapi/linux/bpf.h@v4.1: BPF_MAP_GET_NEXT_KEY looks a key up and gives the next, "
    "or an error"
)
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

DELETE, NEXT = 3, 4
BLANK = b"\xee\xee\xee\xee"


def _walk(process: Process, map_: Map, count: int) -> list[tuple[bytes, int]]:
    """The first keys of a map, and the addresses at which the kernel stored them.

    Each request names the previous key by address, so that the program does not depend on the
    order.
    """
    found: list[tuple[bytes, int]] = []
    before = 0
    for _ in range(count):
        place = process.place(BLANK)
        assert map_.call(NEXT, key=before, value=place).value == 0
        found.append((process.load(place, 4).data or b"", place))
        before = place
    return found


@case(spec="kernel/bpf/arraymap.c:array_map_get_next_key")
def test_walk_array(ue: UserEvents) -> None:
    """An array is iterated from 0 to its last index, after which is ENOENT."""
    map_ = Bpf(ue.process).array(max_entries=3)
    assert map_.keys() == [b"\0\0\0\0", b"\1\0\0\0", b"\2\0\0\0"]
    assert map_.next_key(b"\2\0\0\0").errno == "ENOENT"
    assert map_.next_key(b"\0\0\0\0").data == b"\1\0\0\0"


@case(spec="kernel/bpf/arraymap.c:array_map_get_next_key")
@variants({"next": b"\3\0\0\0", "far": b"\0\0\1\0", "last": b"\xff\xff\xff\xff"})
def test_walk_array_outside(ue: UserEvents, key: bytes) -> None:
    """After an index that an array does not have comes its first."""
    assert Bpf(ue.process).array(max_entries=3).next_key(key).data == b"\0\0\0\0"


@case
def test_walk_hash(ue: UserEvents) -> None:
    """Iterating over a hash returns each of its keys once, in unspecified order."""
    map_ = Bpf(ue.process).map(max_entries=8)
    for key in (b"one.", b"two.", b"3...", b"4...", b"5..."):
        map_.update(key, b"a value.")
    found = _walk(ue.process, map_, 5)
    assert sorted(key for key, _ in found) == [b"3...", b"4...", b"5...", b"one.", b"two."]
    assert map_.call(NEXT, key=found[-1][1], value=found[0][1]).errno == "ENOENT"


@case
def test_walk_hash_again(ue: UserEvents) -> None:
    """An unchanged hash is iterated in the same order; an unknown key restarts."""
    process = ue.process
    map_ = Bpf(process).map(max_entries=8)
    for key in (b"one.", b"two.", b"3..."):
        map_.update(key, b"a value.")
    found = _walk(process, map_, 3)
    assert sorted(key for key, _ in found) == [b"3...", b"one.", b"two."]
    unknown, room = process.place(b"none"), process.place(BLANK)
    keys = [key for key, _ in found]
    for place, following in zip([unknown, found[0][1], found[1][1]], keys, strict=True):
        assert map_.call(NEXT, key=place, value=room).value == 0
        assert process.load(room, 4).data == following


@case
def test_walk_empty(ue: UserEvents) -> None:
    """An empty hash has no next key, and the buffer is not written."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map()
    room = process.place(b"untouched")
    assert map_.call(NEXT, key=0, value=room).errno == "ENOENT"
    assert map_.next_key(b"key.").errno == "ENOENT"
    assert process.load(room, 9).data == b"untouched"


@case
def test_walk_and_delete(ue: UserEvents) -> None:
    """Taking and deleting the first key repeatedly empties a hash."""
    map_ = Bpf(ue.process).map()
    for key in (b"one.", b"two.", b"3..."):
        map_.update(key, b"a value.")
    found = []
    for _ in range(3):
        ((key, place),) = _walk(ue.process, map_, 1)
        found.append(key)
        assert map_.call(DELETE, key=place).value == 0
    assert sorted(found) == [b"3...", b"one.", b"two."]
    assert map_.next_key(None).errno == "ENOENT"


@case
def test_walk_in_place(ue: UserEvents) -> None:
    """The next key may be stored over the key that was passed."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.array(max_entries=3)
    key = process.place(b"\0\0\0\0")
    assert map_.call(NEXT, key=key, value=key).value == 0
    assert process.load(key, 4).data == b"\1\0\0\0"
    assert map_.call(NEXT, key=key, value=key).value == 0
    assert map_.call(NEXT, key=key, value=key).errno == "ENOENT"
    assert process.load(key, 4).data == b"\2\0\0\0"
