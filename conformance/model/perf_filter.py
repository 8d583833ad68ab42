"""Filters of one predicate on one field: trace_events_filter.c:process_preds, parse_pred.

Only what cases need is known: numbers with == != < >, strings with == and !=.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from conformance.abi.profiles import Profile
from conformance.model.definition import Field
from conformance.model.errors import Errno, NotModelled
from conformance.model.events import Event

_PREDICATE = re.compile(r'(\w+) *(==|!=|<|>) *(?:"([^"]*)"|(-?\d+))')
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True, slots=True)
class Predicate:
    """``field OPERATOR constant``."""

    field: Field
    operator: str
    constant: int | bytes

    def matches(self, record: bytes) -> bool:
        """Whether a record, common fields included, passes the filter."""
        field = self.field
        raw = record[field.offset : field.offset + field.size]
        if isinstance(self.constant, int):
            value = int.from_bytes(raw, "little", signed=field.signed)
            return _COMPARISONS[self.operator](value, self.constant)
        if field.is_location:
            word = int.from_bytes(raw, "little")
            start = (word & 0xFFFF) + (field.offset + 4 if field.is_relative else 0)
            raw = record[start : start + (word >> 16)]
        return (raw.partition(b"\0")[0] == self.constant) == (self.operator == "==")


def parse(text: str, event: Event, profile: Profile) -> Predicate:
    """create_filter().  Raises Errno("EINVAL") and NotModelled."""
    found = _PREDICATE.fullmatch(text.strip())
    if found is None:
        raise NotModelled(f"the filter {text!r}")
    name, sign, string, number = found.groups()
    field = next((field for field in event.fields if field.name == name), None)
    if field is None:
        if name.startswith("common_"):
            raise NotModelled("a filter on a common field")
        raise Errno("EINVAL")
    if string is None:
        if _is_string(field) or field.size not in (1, 2, 4, 8):
            raise NotModelled("a number where a string is")
        return Predicate(field, sign, int(number))
    # Before 6.4 no field of a user event was known to be a string.
    if not _is_string(field) or not profile.has("remote_enable") or sign not in ("==", "!="):
        raise Errno("EINVAL")
    return Predicate(field, sign, string.encode("latin-1"))


def _is_string(field: Field) -> bool:
    """filter_assign_type()."""
    return "char" in field.type and ("[" in field.type or field.is_location)
