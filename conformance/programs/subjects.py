"""What a call is about, to find the earlier calls that explain it."""

from __future__ import annotations

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import USER_REG_OF, Profile
from conformance.ops.compat import Write32, Writev32
from conformance.programs.observed import bytes_at
from vm.recorder.recording import Call

_INDEX_SIZE = 4
_POINTER = 8
_WRITES = (ops.Write, ops.Writev, ops.Pwrite, ops.Pwritev, Write32, Writev32)


def subjects_of(call: Call, operation: ops.Operation, profile: Profile) -> frozenset[str]:
    """The descriptor, the enable bit, the name and the write index of a call."""
    match operation:
        case ops.Open():
            return frozenset({f"descriptor {call.result}"})
        case ops.Dup(new_slot=new):
            return frozenset({f"descriptor {new}"})
        case ops.Ioctl():
            found = _ioctl(call, operation, profile)
        case (
            ops.Write(slot=slot)
            | ops.Writev(slot=slot)
            | ops.Pwrite(slot=slot)
            | Write32(slot=slot)
            | Writev32(slot=slot)
        ):
            found = {f"index {written_index(call, operation)} of {slot}"}
        case _:
            found = set()
    return frozenset({f"descriptor {getattr(operation, 'slot', None)}", *found})


def _ioctl(call: Call, operation: ops.Ioctl, profile: Profile) -> set[str]:
    memory, address = call.before.memory, operation.argument
    found = set()
    if operation.request == uapi.DIAG_IOCSDEL and memory:
        found.add(f"name {_name(memory[0].data)}")
    if operation.request == uapi.DIAG_IOCSREG:
        place = address + USER_REG_OF[profile.generation].member("name_args").offset
        pointer = int.from_bytes(bytes_at(memory, place, _POINTER) or b"", "little")
        name = next((each.data for each in memory if each.address == pointer), b"")
        found.add(f"name {_name(name)}")
        if call.result == 0:
            found.add(f"index {registered_index(call, operation, profile)} of {operation.slot}")
    if operation.request != uapi.DIAG_IOCSDEL and profile.has("remote_enable"):
        bit = bytes_at(memory, address + uapi.USER_REG.member("enable_bit").offset, 1)
        word = bytes_at(memory, address + uapi.USER_REG.member("enable_addr").offset, _POINTER)
        if bit and word:
            found.add(f"bit {bit[0]} of {int.from_bytes(word, 'little'):#x}")
    return found


def _name(text: bytes) -> str:
    """The name in a registration string."""
    return text.partition(b"\0")[0].partition(b" ")[0].partition(b":")[0].decode("latin-1")


def registered_index(call: Call, operation: ops.Ioctl, profile: Profile) -> int:
    """The write index that a registration returned, -1 if it could not be read."""
    layout = USER_REG_OF[profile.generation]
    place = operation.argument + layout.member("write_index").offset
    return _index(bytes_at(call.after.memory, place, _INDEX_SIZE))


def written_index(call: Call, operation: ops.Operation) -> int:
    """The first four bytes of a write, -1 if they could not be read."""
    if isinstance(operation, (ops.Write, ops.Pwrite, Write32)):
        return _index(bytes_at(call.before.memory, operation.address, _INDEX_SIZE))
    # After the vector itself.
    first = b"".join(each.data for each in call.before.memory[1:])[:_INDEX_SIZE]
    return _index(first if len(first) == _INDEX_SIZE else None)


def is_write(operation: ops.Operation) -> bool:
    """Whether an operation writes to the data file."""
    return isinstance(operation, _WRITES)


def _index(raw: bytes | None) -> int:
    return -1 if raw is None else int.from_bytes(raw, "little", signed=True)
