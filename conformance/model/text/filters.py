"""Filters on the fields of an event.

Source: trace_events_filter.c:filter_match_preds, select_comparison_fn.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from msgspec import Struct

from conformance.abi.profile import Profile
from conformance.model.errors import NotModelled
from conformance.model.text import cpu_sets, globs
from conformance.model.text.definition import Field

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "&": lambda left, right: left & right != 0,
}
INTEGER_SIZES = (1, 2, 4, 8)
COMMON_FIELDS = (
    Field("unsigned short", "common_type", 0, 2),
    Field("unsigned char", "common_flags", 2, 1),
    Field("unsigned char", "common_preempt_count", 3, 1),
    Field("int", "common_pid", 4, 4),
)
# Stands for the pid of a case, which is not 1.
_SOME_PID = 1000


class Term(Struct, frozen=True):
    """One comparison; ``field`` is None for the name of the task.

    ``constant`` is a number, a text or a set of processors.  Texts are compared as in ``profile``.
    """

    field: Field | None
    operator: str
    constant: int | bytes | frozenset[int]
    profile: Profile

    def passes(self, record: bytes) -> bool:
        """Whether a record passes."""
        if self.field is None:
            # No task of a case has the name.
            return self.operator == "!="
        if isinstance(self.constant, bytes):
            text = string_of(self.field, record)
            if self.operator == "~":
                return globs.matches(text, self.constant, self.profile)
            return globs.equals(text, self.constant, self.profile) == (self.operator == "==")
        if self.field.size not in INTEGER_SIZES:
            # select_comparison_fn() has no function for other sizes.
            return False
        if isinstance(self.constant, frozenset):
            value = _value(self.field, record) % (1 << 8 * self.field.size)
            return cpu_sets.passes(self.operator, value, self.field.size, self.constant)
        # The constant is truncated to the size of the field.
        raw = (self.constant % (1 << 64)).to_bytes(8, "little")[: self.field.size]
        constant = int.from_bytes(raw, "little", signed=self.field.signed)
        return _COMPARISONS[self.operator](_value(self.field, record), constant)


class Group(Struct, frozen=True):
    """Terms joined by && or ||, or a negated term."""

    word: str
    parts: tuple[Term | Group, ...]

    def passes(self, record: bytes) -> bool:
        """Whether a record passes."""
        results = (part.passes(record) for part in self.parts)
        match self.word:
            case "&&":
                return all(results)
            case "||":
                return any(results)
        return not any(results)


class Filter(Struct, frozen=True):
    """A filter: its text and its expression."""

    text: str
    expression: Term | Group

    def matches(self, record: bytes) -> bool:
        """Whether a record, common fields included, passes."""
        return self.expression.passes(record)


def is_string(field: Field) -> bool:
    """filter_assign_type(), for the string types of user events."""
    return "char" in field.type and ("[" in field.type or field.is_location)


def find_own_field(fields: Sequence[Field], name: str) -> Field | None:
    """A field by name; the kernel's list begins with the last one defined."""
    return next((field for field in reversed(fields) if field.name == name), None)


def find_field(fields: Sequence[Field], name: str) -> Field | None:
    """trace_find_event_field(): a field of the event, or a common field."""
    common = next((field for field in COMMON_FIELDS if field.name == name), None)
    return find_own_field(fields, name) or common


def _value(field: Field, record: bytes) -> int:
    if field.name == "common_pid" and field in COMMON_FIELDS:
        return _SOME_PID
    if field in COMMON_FIELDS:
        raise NotModelled(f"a filter on {field.name}")
    raw = record[field.offset : field.offset + field.size]
    return int.from_bytes(raw, "little", signed=field.signed)


def string_of(field: Field, record: bytes) -> bytes:
    """The bytes that a pattern is held against."""
    start, size = field.located(record) if field.is_location else (field.offset, field.size)
    return record[start : start + size]
