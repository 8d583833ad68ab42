"""Structures that a program stores before an ioctl(2), as their C initializers."""

from __future__ import annotations

from collections.abc import Sequence

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import USER_REG_OF, Profile
from conformance.abi.uapi import Layout
from conformance.ops import race
from conformance.ops.operation import Operation
from conformance.repro import literals as c

_ADDRESSES = ("name_args", "enable_addr", "disable_addr")
_TYPES = {1: "__u8", 2: "__u16", 4: "__u32", 8: "__u64"}


class Structures:
    """Which stores of a program are structures of user_events."""

    def __init__(self, program: Sequence[Operation], profile: Profile) -> None:
        self._program = program
        self.reg = USER_REG_OF.get(profile.generation, uapi.USER_REG)

    def initializer(self, position: int) -> str:
        """The structure that the operation at a position stores, "" if it is none."""
        store = self._program[position]
        assert isinstance(store, ops.Store)
        layout = self._layout(position, store)
        return "" if layout is None else _fields(layout, store.data)

    def loaded(self, position: int, data: bytes) -> str:
        """The structure that an operation loads, "" if it is none."""
        load = self._program[position]
        for earlier in reversed(self._program[:position]):
            if isinstance(earlier, ops.Ioctl) and earlier.argument == getattr(load, "address", 0):
                known = earlier.request == uapi.DIAG_IOCSREG
                return _fields(self.reg, data) if known else ""
        return ""

    def _layout(self, position: int, store: ops.Store) -> Layout | None:
        """The layout by the first ioctl(2) that reads the address."""
        for later in self._program[position + 1 :]:
            for step in race.steps_of(later):
                if isinstance(step, ops.Ioctl) and step.argument == store.address:
                    requests = {uapi.DIAG_IOCSREG: self.reg, uapi.DIAG_IOCSUNREG: uapi.USER_UNREG}
                    return requests.get(step.request)
            if isinstance(later, ops.Store) and later.address == store.address:
                return None
        return None

    def declarations(self) -> list[str]:
        """The structures and ioctl(2) numbers, as in <linux/user_events.h> of the ABI."""
        lines: list[str] = []
        for layout in dict.fromkeys((self.reg, uapi.USER_UNREG)):
            lines += [f"struct {layout.name} {{"]
            lines += [f"\t{_TYPES[each.size]} {each.name};" for each in layout.members]
            packed = " __attribute__((__packed__))" if layout.size != 24 else ""
            lines += [f"}}{packed};", ""]
        return [
            *lines,
            *(
                f"#define {name} (1U << {bit.bit_length() - 1})"
                for bit, name in uapi.REG_FLAGS.items()
            ),
            f"#define DIAG_IOCSREG {uapi.DIAG_IOCSREG:#x}UL",
            f"#define DIAG_IOCSDEL {uapi.DIAG_IOCSDEL:#x}UL",
            f"#define DIAG_IOCSUNREG {uapi.DIAG_IOCSUNREG:#x}UL",
        ]


def _fields(layout: Layout, data: bytes) -> str:
    """A compound literal of these bytes, "" if they are no such structure."""
    if len(data) != layout.size:
        return ""
    values = layout.unpack(data)
    if layout.pack(values) != data:
        return ""
    shown = [
        f".{name} = {_value(name, value, layout)}"
        for name, value in values.items()
        if value or name in ("size", "enable_bit", "disable_bit")
    ]
    return f"(struct {layout.name}){{ {', '.join(shown)} }}"


def _value(name: str, value: int, layout: Layout) -> str:
    if name == "size" and value == layout.size:
        return f"sizeof(struct {layout.name})"
    if name in _ADDRESSES and value:
        return f"(__u64)({c.address(value)})"
    if name == "flags" and value in uapi.REG_FLAGS:
        return uapi.REG_FLAGS[value]
    return str(value) if value < 1 << 16 else f"{value:#x}"
