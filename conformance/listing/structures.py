"""Structures that calls point to, decoded from the program's memory, as strace writes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from conformance.abi import perf, uapi
from conformance.abi.uapi import Layout
from conformance.listing.memory import Memory
from conformance.listing.names import Names
from conformance.ops.c_text import flag_names, literal

# struct user_reg by the bytes that the program stored.
_USER_REG = {
    layout.size: layout
    for layout in (uapi.USER_REG_BIT_STATUS, uapi.USER_REG_BYTE_STATUS, uapi.USER_REG)
}
_ALWAYS = frozenset({"size", "enable_size", "enable_bit", "disable_bit"})
_TYPES = {1: "PERF_TYPE_SOFTWARE", 2: "PERF_TYPE_TRACEPOINT"}
_SAMPLES = {
    perf.PERF_SAMPLE_IP: "PERF_SAMPLE_IP",
    perf.PERF_SAMPLE_TID: "PERF_SAMPLE_TID",
    perf.PERF_SAMPLE_PERIOD: "PERF_SAMPLE_PERIOD",
    perf.PERF_SAMPLE_RAW: "PERF_SAMPLE_RAW",
    perf.PERF_SAMPLE_REGS_INTR: "PERF_SAMPLE_REGS_INTR",
}
_ATTR_FLAGS = {
    perf.ATTR_DISABLED: "disabled=1",
    perf.ATTR_INHERIT: "inherit=1",
    perf.ATTR_EXCLUDE_KERNEL: "exclude_kernel=1",
    perf.ATTR_RESERVED: "bit 63",
}
_INDEX = 4
_IOVEC = 16
# Parts of a vector that are shown.
_MOST_PARTS = 6


class Structures:
    """Arguments of one actor's calls; what is not known of them stays a pointer."""

    def __init__(self, memory: Memory, names: Names, actor: str) -> None:
        self._memory = memory
        self._names = names
        self._actor = actor

    def user_reg(self, address: int) -> str:
        """struct user_reg with its definition."""
        layout = reg_layout(self._memory, self._actor, address)
        if layout is None:
            return self._names.pointer(address)
        values, texts = self._members(layout, address)
        texts["name_args"] = self.string(values["name_args"])
        if "flags" in values:
            texts["flags"] = _flags(values["flags"], uapi.REG_FLAGS)
            texts["enable_addr"] = self._names.pointer(values["enable_addr"])
        return _initializer(values, texts)

    def user_unreg(self, address: int) -> str:
        """struct user_unreg."""
        if self._memory.load(self._actor, address, uapi.USER_UNREG.size) is None:
            return self._names.pointer(address)
        values, texts = self._members(uapi.USER_UNREG, address)
        texts["disable_addr"] = self._names.pointer(values["disable_addr"])
        return _initializer(values, texts)

    def perf_event_attr(self, address: int) -> str:
        """struct perf_event_attr."""
        layout = perf.PERF_EVENT_ATTR
        config = self._memory.labelled(self._actor, address + layout.member("config").offset)
        if self._memory.load(self._actor, address, layout.size) is None:
            return self._names.pointer(address)
        values, texts = self._members(layout, address)
        texts["type"] = _TYPES.get(values["type"], str(values["type"]))
        texts["sample_type"] = _flags(values["sample_type"], _SAMPLES)
        if config:
            values["config"], texts["config"] = 1, config
        flags = _flags(values.pop("flags"), _ATTR_FLAGS, ", ")
        text = _initializer(values, texts)
        return text if flags == "0" else f"{text[:-1]}, {flags}}}"

    def string(self, address: int) -> str:
        """A C string."""
        found = self._memory.string(self._actor, address)
        if found is None:
            return self._names.pointer(address)
        return literal(found + b"\0").replace('\\0"', '"') if found else '""'

    def payload(self, address: int, count: int, *, data: bool) -> str:
        """What write(2) takes: on a data file the write index and the payload."""
        found = self._memory.load(self._actor, address, count) if count else b""
        if found is None:
            return self._names.pointer(address)
        if not data or count < _INDEX:
            return literal(found)
        (index,) = struct.unpack_from("<i", found)
        rest = f", {literal(found[_INDEX:])}" if count > _INDEX else ""
        return f"{{write_index={index}{rest}}}"

    def vector(self, address: int, count: int, *, data: bool) -> str:
        """The iovecs of writev(2), each with its bytes, or with pointer and length."""
        raw = self._memory.load(self._actor, address, count * _IOVEC)
        if not raw:
            return self._names.pointer(address)
        parts = [
            self._part(base, length, data=data and place == 0)
            for place, (base, length) in enumerate(struct.iter_unpack("<QQ", raw))
        ]
        more = f", ... {count} iovecs" if count > _MOST_PARTS else ""
        return f"[{', '.join(parts[:_MOST_PARTS])}{more}]"

    def _part(self, base: int, length: int, *, data: bool) -> str:
        if length and self._memory.load(self._actor, base, length) is None:
            size = str(length) if length < 1 << 32 else f"{length:#x}"
            return f"{{{self._names.pointer(base)}, {size}}}"
        return self.payload(base, length, data=data)

    def _members(self, layout: Layout, address: int) -> tuple[dict[str, int], dict[str, str]]:
        values = layout.unpack(self._memory.load(self._actor, address, layout.size) or b"")
        return values, {name: str(value) for name, value in values.items()}


def reg_layout(memory: Memory, actor: str, address: int) -> Layout | None:
    """The layout of the struct user_reg at an address, by its stored length."""
    sizes = sorted(_USER_REG, reverse=True)
    return next((_USER_REG[size] for size in sizes if memory.load(actor, address, size)), None)


def filled(layout: Layout, raw: bytes) -> dict[str, int]:
    """The members of struct user_reg that the kernel fills in."""
    return {name: value for name, value in layout.unpack(raw).items() if name in uapi.REG_RESULTS}


def _initializer(values: Mapping[str, int], texts: Mapping[str, str]) -> str:
    shown = [
        f"{name}={texts[name]}"
        for name, value in values.items()
        if name not in uapi.REG_RESULTS and (value or name in _ALWAYS)
    ]
    return f"{{{', '.join(shown)}}}"


def _flags(bits: int, names: Mapping[int, str], between: str = " | ") -> str:
    known = sum(bit for bit in names if bits & bit)
    text = flag_names(bits, names, "").replace(" | ", between)
    rest = f"{bits & ~known:#x}" if bits & ~known else ""
    return between.join(filter(None, (text, rest))) or "0"
