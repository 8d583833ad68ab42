"""bpf(2): maps, programs, and sockets with filters.

Attributes, keys, values, instructions and licenses are in the process's scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance import ops
from conformance.abi.bpf import (
    ATTR_SIZE,
    MAP_CREATE,
    MAP_ELEM,
    PROG_LOAD,
    Command,
    MapType,
    ProgramType,
)
from conformance.client.addresses import BUFFER, PAGE, SCRATCH, SCRATCH_LENGTH, STRING, STRUCT
from conformance.client.bpf_program import LogBuffer, Program, SocketPair
from conformance.client.caller import Descriptor
from conformance.client.process import Process
from conformance.ops import Observation
from conformance.ops import bpf_assembler as bpf
from conformance.ops.bpf_assembler import INSTRUCTION_SIZE, Piece
from conformance.ops.bpf_opcodes import R0

_KEY = BUFFER
_VALUE = BUFFER + PAGE
_INSTRUCTIONS = BUFFER + 2 * PAGE
_MAX_INSTRUCTIONS = (SCRATCH + SCRATCH_LENGTH - _INSTRUCTIONS) // INSTRUCTION_SIZE
GPL = b"GPL\0"


class Bpf:
    """bpf(2) of one process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.actor = process.actor

    def place(self, attributes: bytes, descriptors: Sequence[tuple[int, int]] = ()) -> int:
        """Store attributes with descriptor numbers (offset, slot) in them; return the address."""
        actor = self.actor
        self.process.queue(
            ops.Store(actor, STRUCT, attributes),
            *(ops.StoreDescriptor(actor, STRUCT + offset, slot) for offset, slot in descriptors),
        )
        return STRUCT

    def call(
        self,
        command: int,
        attributes: bytes,
        descriptors: Sequence[tuple[int, int]] = (),
        *,
        size: int | None = None,
        slot: int | None = None,
    ) -> Observation:
        """A command with raw attributes; ``size`` in bytes if it differs from theirs."""
        address = self.place(attributes, descriptors)
        length = len(attributes) if size is None else size
        return self.process.run(self.operation(command, address, length, slot))

    def operation(self, command: int, address: int, size: int, slot: int | None) -> ops.Bpf:
        """A command with stored attributes."""
        return ops.Bpf(self.actor, command, address, size, slot)

    # Maps

    def map(
        self,
        kind: int = MapType.HASH,
        *,
        key_size: int = 4,
        value_size: int = 8,
        max_entries: int = 4,
    ) -> Map:
        """BPF_MAP_CREATE; sizes in bytes."""
        attributes = MAP_CREATE.pack(
            {
                "map_type": kind,
                "key_size": key_size,
                "value_size": value_size,
                "max_entries": max_entries,
            }
        )
        slot = self.process.free_slot()
        created = self.call(Command.MAP_CREATE, attributes, slot=slot)
        return Map(self, created, slot, key_size, value_size)

    def array(self, value_size: int = 8, max_entries: int = 4) -> Map:
        """BPF_MAP_TYPE_ARRAY with 32-bit keys."""
        return self.map(MapType.ARRAY, value_size=value_size, max_entries=max_entries)

    # Programs

    def load(
        self,
        program: Sequence[Piece],
        kind: int = ProgramType.SOCKET_FILTER,
        *,
        license: bytes = GPL,
        log: LogBuffer | None = None,
        kern_version: int = 0,
        prog_flags: int = 0,
        insn_cnt: int | None = None,
    ) -> Program:
        """BPF_PROG_LOAD; ``insn_cnt`` if it differs from the number of instructions."""
        log = log or LogBuffer(0)
        code = bpf.assemble(program)
        if len(code) > _MAX_INSTRUCTIONS * INSTRUCTION_SIZE:
            raise ValueError(f"more than {_MAX_INSTRUCTIONS} instructions exceed scratch memory")
        actor = self.actor
        self.process.queue(
            ops.Store(actor, _INSTRUCTIONS, code),
            ops.Store(actor, STRING, license),
            *(
                ops.StoreDescriptor(actor, _INSTRUCTIONS + offset, slot)
                for offset, slot in bpf.descriptors(program)
            ),
        )
        attributes = PROG_LOAD.pack(
            {
                "prog_type": kind,
                "insn_cnt": len(code) // INSTRUCTION_SIZE if insn_cnt is None else insn_cnt,
                "insns": _INSTRUCTIONS,
                "license": STRING,
                "log_level": log.level,
                "log_size": log.size,
                "log_buf": log.address,
                "kern_version": kern_version,
                "prog_flags": prog_flags,
            }
        )
        slot = self.process.free_slot()
        return Program(self.call(Command.PROG_LOAD, attributes, slot=slot), slot)

    def load_returning_7(self) -> Program:
        """Load a socket filter that returns 7."""
        return self.load([bpf.mov64_imm(R0, 7), bpf.exit_insn()])

    # Sockets

    def pair(self) -> SocketPair:
        """Two connected datagram sockets."""
        slot, other = self.process.free_slot(), self.process.free_slot()
        self.process.queue(ops.Socketpair(self.actor, slot, other))
        return SocketPair(self.process, slot, other)

    def close(self, program: Program) -> Observation:
        """close(2) of a program's descriptor."""
        return self.process.run(ops.Close(self.actor, program.slot))

    def run(self, program: Program, datagram: bytes = b"datagram") -> bytes | None:
        """The datagram after a filter; None if dropped."""
        pair = self.pair()
        pair.attach(program)
        return pair.pass_through(datagram)


class Map(Descriptor):
    """Result of BPF_MAP_CREATE.  Sizes in bytes."""

    def __init__(
        self, bpf: Bpf, created: Observation, slot: int, key_size: int, value_size: int
    ) -> None:
        super().__init__(bpf.process, slot)
        self.bpf = bpf
        self.created = created
        self.key_size = key_size
        self.value_size = value_size

    @property
    def errno(self) -> str:
        """Name of the error, "" on success."""
        return self.created.errno

    def by(self, other: Bpf) -> Map:
        """The map in a process that inherited the descriptor."""
        return Map(other, self.created, self.slot, self.key_size, self.value_size)

    def call(self, command: int, *, key: int = 0, value: int = 0, flags: int = 0) -> Observation:
        """A command on the map with raw addresses."""
        attributes = MAP_ELEM.pack({"key": key, "value": value, "flags": flags})
        return self.bpf.call(command, attributes[:ATTR_SIZE], [(0, self.slot)])

    def _place(self, address: int, content: bytes) -> None:
        self.process.queue(ops.Store(self.process.actor, address, content))

    def update(self, key: bytes, value: bytes, flags: int = 0) -> Observation:
        """BPF_MAP_UPDATE_ELEM."""
        self._place(_KEY, key)
        self._place(_VALUE, value)
        return self.call(Command.MAP_UPDATE_ELEM, key=_KEY, value=_VALUE, flags=flags)

    def lookup(self, key: bytes) -> Observation:
        """BPF_MAP_LOOKUP_ELEM; the data is the value."""
        self._place(_KEY, key)
        self._place(_VALUE, b"\xee" * self.value_size)
        done = self.call(Command.MAP_LOOKUP_ELEM, key=_KEY, value=_VALUE)
        return self._answer(done, self.value_size)

    def value(self, key: bytes) -> bytes | None:
        """The value of a key; None if missing."""
        return self.lookup(key).data

    def delete(self, key: bytes) -> Observation:
        """BPF_MAP_DELETE_ELEM."""
        self._place(_KEY, key)
        return self.call(Command.MAP_DELETE_ELEM, key=_KEY)

    def next_key(self, key: bytes | None) -> Observation:
        """BPF_MAP_GET_NEXT_KEY; the data is the next key."""
        self._place(_KEY, key or b"")
        self._place(_VALUE, b"\xee" * self.key_size)
        address = 0 if key is None else _KEY
        done = self.call(Command.MAP_GET_NEXT_KEY, key=address, value=_VALUE)
        return self._answer(done, self.key_size)

    def keys(self) -> list[bytes]:
        """All keys in iteration order, at most 65."""
        found: list[bytes] = []
        key = self.next_key(None).data
        while key is not None and len(found) <= 64:
            found.append(key)
            key = self.next_key(key).data
        return found

    def _answer(self, done: Observation, size: int) -> Observation:
        """The observation with the bytes that the kernel wrote."""
        content = self.process.load(_VALUE, size).data
        return done if done.errno else Observation(done.value, "", content, done.watched)

    def read(self, count: int) -> Observation:
        """read(2) of the descriptor."""
        return self.process.run(ops.Read(self.process.actor, self.slot, count))

    def write(self, data: bytes) -> Observation:
        """write(2) to the descriptor."""
        self._place(_VALUE, data)
        return self.write_at(_VALUE, len(data))

    def dup(self) -> Map:
        """dup(2) of the descriptor."""
        slot = self.process.free_slot()
        created = self.process.run(ops.Dup(self.process.actor, self.slot, slot))
        return Map(self.bpf, created, slot, self.key_size, self.value_size)
