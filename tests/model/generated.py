"""Hypothesis strategies: registration strings, and programs of raw operations.

Programs use few names, words and descriptors, so that operations interact, and bad addresses,
numbers and texts, so that some fail.  Lengths are small enough for a model in Python.
"""

from __future__ import annotations

import mmap
import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from conformance import ops
from conformance.abi import grammar, rfc_v1, uapi
from conformance.client import tracefs
from conformance.ops import Operation, View

# Deterministic: a test that fails on one machine fails on all.
STEADY = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=list(HealthCheck),
)

PAGE = 4096
MEMORY = 0x2000_0000_0000
PRIVATE_PAGES = 4
SHARED = MEMORY + 16 * PAGE
STRUCT, STRING, BUFFER = MEMORY, MEMORY + 256, MEMORY + PAGE
WORDS = MEMORY + 2 * PAGE
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
ACTORS = ("p1", "p2")
SLOTS = (3, 4)
Pieces = st.SearchStrategy[list[Operation]]
WATCHES = tuple(ops.Watch(actor, WORDS, 16) for actor in ACTORS)

addresses = st.sampled_from(
    [
        STRUCT,
        STRING,
        BUFFER,
        WORDS,
        WORDS + 8,
        WORDS + PAGE - 4,
        SHARED,
        MEMORY + PRIVATE_PAGES * PAGE - 2,
        MEMORY + PRIVATE_PAGES * PAGE,
        0,
        PAGE,
        0xFFFF_8880_0000_0000,
        (1 << 64) - 1,
    ]
)
types = st.sampled_from([*grammar.SCALARS, "char[20]", "unsigned char[4]", "__data_loc char[]"])
words_of_text = st.sampled_from(
    [
        *("u32", "char[", "char[4]", "0x10]", "struct", "s", "__rel_loc", "unsigned", "a", "b"),
        *("", "0", "20", "+5", "4294967295", "2147483648", "]", "a:b", ";", "\xe9"),
    ]
)
# Well-formed definitions, and texts of parts of definitions.
fields = st.lists(
    st.one_of(
        st.tuples(types, st.sampled_from("abcdef")).map(" ".join),
        st.integers(1, 2000).map(lambda size: f"struct s x {size}"),
    ),
    max_size=5,
).map("; ".join)
oddities = st.lists(
    st.tuples(words_of_text, st.sampled_from([" ", "", ";", "; ", "\t"])), max_size=8
)
arguments = st.one_of(fields, oddities.map(lambda pairs: "".join(a + b for a, b in pairs)))
names = st.sampled_from(["one", "two", "a:b", "", "sched_switch"])
definitions = st.one_of(names, st.tuples(names, arguments).map(" ".join))
first_definitions = st.one_of(
    names,
    st.tuples(names, st.sampled_from(["u8\ta\t1\t0", "u32\ta\t4", "u8", "print_fmt\tx\t0"])).map(
        ";".join
    ),
)


def alone(operation: Operation) -> list[Operation]:
    """A piece of one operation."""
    return [operation]


def _registration(members: tuple[str, str, int, int, int, int]) -> list[Operation]:
    actor, definition, address, bit, flags, size = members
    reg = uapi.USER_REG.pack(
        {
            "size": size,
            "enable_bit": bit,
            "enable_size": 4,
            "flags": flags,
            "enable_addr": address,
            "name_args": STRING,
        }
    )
    return [
        ops.Store(actor, STRUCT, reg),
        ops.Store(actor, STRING, definition.encode()[:600] + b"\0"),
        ops.Ioctl(actor, SLOTS[0], uapi.DIAG_IOCSREG, STRUCT),
    ]


def _first_version(members: tuple[str, str]) -> list[Operation]:
    """A registration of rfc-v1; other ABIs reject its number."""
    actor, definition = members
    return [
        ops.Store(actor, STRING, definition.encode()[:600] + b"\0"),
        ops.Ioctl(actor, SLOTS[0], rfc_v1.DIAG_IOCSREG, STRING),
    ]


def _unregistration(members: tuple[str, int, int]) -> list[Operation]:
    actor, address, bit = members
    unreg = uapi.USER_UNREG.pack({"size": 16, "disable_bit": bit, "disable_addr": address})
    return [
        ops.Store(actor, STRUCT, unreg),
        ops.Ioctl(actor, SLOTS[0], uapi.DIAG_IOCSUNREG, STRUCT),
    ]


def _deletion(members: tuple[str, str]) -> list[Operation]:
    actor, name = members
    return [
        ops.Store(actor, STRING, name.encode() + b"\0"),
        ops.Ioctl(actor, SLOTS[0], uapi.DIAG_IOCSDEL, STRING),
    ]


def _writing(members: tuple[str, int, bytes]) -> list[Operation]:
    actor, index, payload = members
    data = index.to_bytes(4, "little", signed=True) + payload
    return [ops.Store(actor, BUFFER, data), ops.Write(actor, SLOTS[0], BUFFER, len(data))]


actors = st.sampled_from(ACTORS)
ioctl_numbers = st.sampled_from([uapi.DIAG_IOCSREG, uapi.DIAG_IOCSDEL, uapi.DIAG_IOCSUNREG, 0])
slots = st.sampled_from(SLOTS)
bits = st.sampled_from([0, 0, 0, 5])
word_addresses = st.sampled_from([WORDS, WORDS, WORDS, SHARED])
counts = st.sampled_from([0, 1, 4, 8, 16, PAGE, 1025, (1 << 31) - 1, 1 << 40, -1 & (1 << 64) - 1])
enable_paths = st.sampled_from(["one", "one", "two", "two", "none"]).map(
    lambda name: f"{tracefs.ROOT}/events/user_events/{name}/enable"
)
paths = st.one_of(
    st.sampled_from([tracefs.STATUS, tracefs.DYNAMIC_EVENTS, tracefs.TRACE, tracefs.MAXIMUM]),
    enable_paths,
    st.sampled_from(["format", "id"]).map(
        lambda file: f"{tracefs.ROOT}/events/user_events/one/{file}"
    ),
)
switches = st.sampled_from([b"1\n", b"1\n", b"1\n", b"0\n", b"2\n", b"x"])
commands = st.one_of(
    definitions.map(lambda text: f"u:{text}\n".encode()),
    first_definitions.map(lambda text: f"ue:{text}\n".encode()),
    names.map(lambda name: f"-:{name}\n".encode()),
    st.sampled_from([b"", b"\n", b"p:kprobe x\n", b"# only a comment\n", b"-:user_events/one"]),
)


def _writes(
    files: st.SearchStrategy[str], data: st.SearchStrategy[bytes], *flags: int
) -> st.SearchStrategy[ops.WriteFile]:
    modes = st.sampled_from(flags or (os.O_WRONLY,))
    return st.builds(ops.WriteFile, st.just("root"), files, data, modes)


_INSTANCE = f"{tracefs.ROOT}/instances/i"
# Instances and enabling.
listening: st.SearchStrategy[Operation] = st.one_of(
    st.sampled_from([ops.MakeDirectory, ops.RemoveDirectory]).map(
        lambda kind: kind("root", _INSTANCE)
    ),
    _writes(
        st.sampled_from(
            [
                f"{_INSTANCE}/events/user_events/one/enable",
                f"{_INSTANCE}/events/user_events/enable",
                f"{tracefs.ROOT}/events/user_events/enable",
            ]
        ),
        switches,
    ),
    _writes(
        st.sampled_from([f"{_INSTANCE}/set_event", f"{tracefs.ROOT}/set_event"]),
        st.sampled_from([b"one", b"!user_events:one", b"user_events:", b"none"]),
        os.O_WRONLY,
        os.O_WRONLY | os.O_TRUNC,
    ),
)

known_names = st.sampled_from(["one", "two"])
plain = st.sampled_from(["one", "one", "two", "one u32 a", "two u32 a; char[4] b"])


def _mixed(*weighted: tuple[int, st.SearchStrategy[list[Operation]]]) -> Pieces:
    """One of several kinds by weight; ``one_of`` would flatten them."""
    kinds = [kind for weight, kind in weighted for _ in range(weight)]
    return st.sampled_from(range(len(kinds))).flatmap(lambda index: kinds[index])


# Operations of ordinary clients and tracers.
useful = _mixed(
    (
        5,
        st.tuples(
            actors, plain, word_addresses, bits, st.sampled_from([0, 0, 0, 1, 2]), st.just(28)
        ).map(_registration),
    ),
    (2, st.tuples(actors, word_addresses, bits).map(_unregistration)),
    (1, st.tuples(actors, known_names).map(_deletion)),
    (3, st.tuples(actors, st.integers(0, 1), st.binary(max_size=12)).map(_writing)),
    (3, _writes(enable_paths, switches).map(alone)),
    (2, listening.map(alone)),
    (1, st.builds(ops.Close, actors, st.just(SLOTS[0])).map(alone)),
    (1, st.builds(ops.ReadFile, st.just("root"), paths, st.just(View.STRUCTURE)).map(alone)),
    (1, st.sampled_from([ops.Exit("p2"), ops.Fork("p1", "p3"), ops.Exit("p3")]).map(alone)),
)
# Operations with bad arguments.
hostile = st.one_of(
    st.tuples(
        actors, definitions, addresses, st.integers(0, 255), st.integers(0, 65535),
        st.sampled_from([0, 27, 28, 29, 4096, 4097]),
    ).map(_registration),
    st.tuples(actors, first_definitions).map(_first_version),
    st.one_of(
        st.builds(ops.Ioctl, actors, slots, ioctl_numbers, addresses),
        st.builds(ops.Store, actors, addresses, st.binary(max_size=64)),
        st.builds(ops.Load, actors, addresses, st.sampled_from([0, 1, 8, PAGE, 3 * PAGE])),
        st.builds(ops.Write, actors, slots, addresses, counts),
        st.builds(ops.Pwrite, actors, slots, addresses, counts, st.integers(-1, 1)),
        st.builds(ops.Writev, actors, slots, addresses, st.sampled_from([0, 1, 2, 1024, 1025])),
        st.builds(ops.Pwritev, actors, slots, addresses, st.just(1), st.integers(-1, 1)),
        st.builds(ops.Read, actors, slots, st.just(64)),
        st.builds(ops.Lseek, actors, slots, st.integers(-1, 2), st.integers(0, 2)),
        st.builds(ops.Close, actors, slots),
        st.builds(ops.Munmap, actors, addresses, st.sampled_from([0, PAGE, 2 * PAGE])),
        st.builds(
            ops.Mprotect, actors, st.sampled_from([MEMORY, WORDS, SHARED]),
            st.sampled_from([PAGE, 2 * PAGE]), st.sampled_from([0, mmap.PROT_READ, READ_WRITE]),
        ),
        st.builds(ops.ReadFile, st.just("root"), paths, st.sampled_from(View), st.just("o")),
        _writes(
            st.just(tracefs.DYNAMIC_EVENTS), commands,
            os.O_WRONLY, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC,
        ),
        _writes(
            st.just(tracefs.MAXIMUM),
            st.sampled_from([b"0", b"1", b"32768", b"-1", b"99999999999", b"x"]),
        ),
        _writes(st.just(tracefs.TRACE), st.just(b"\n"), os.O_WRONLY | os.O_TRUNC),
        st.builds(ops.Stat, st.just("root"), paths),
        st.builds(ops.Setuid, st.just("p2"), st.just(1000)),
    ).map(alone),
)  # fmt: skip


def prelude() -> list[Operation]:
    """Root, a process with a registered event, and its child."""
    first, second = ACTORS
    return [
        ops.Spawn("root"),
        ops.Spawn(first),
        ops.Mmap(first, MEMORY, PRIVATE_PAGES * PAGE, READ_WRITE, mmap.MAP_PRIVATE),
        ops.Mmap(first, SHARED, PAGE, READ_WRITE, mmap.MAP_SHARED),
        ops.Open(first, SLOTS[0], tracefs.DATA, os.O_RDWR),
        *_registration((first, "one", WORDS, 0, 0, 28)),
        ops.Fork(first, second),
        ops.Open(second, SLOTS[1], tracefs.STATUS, os.O_RDONLY),
    ]


def programs(*, hostility: int = 0) -> Pieces:
    """The prelude and some pieces: four useful ones for ``hostility`` hostile ones."""
    piece = _mixed((4, useful), (hostility, hostile))
    return st.lists(piece, min_size=1, max_size=20).map(_sensible)


def _sensible(pieces: list[list[Operation]]) -> list[Operation]:
    """The prelude and the pieces, without operations of tasks that do not exist."""
    program = prelude()
    born = {"root", *ACTORS}
    dead: set[str] = set()
    for operation in (each for piece in pieces for each in piece):
        if operation.actor not in born - dead:
            continue
        if isinstance(operation, ops.Fork):
            if operation.child in born:
                continue
            born.add(operation.child)
        elif isinstance(operation, ops.Exit):
            dead.add(operation.actor)
        program.append(operation)
    return program
