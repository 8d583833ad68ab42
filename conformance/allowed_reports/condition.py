"""The ``when`` of a rule: the kernels that it applies to.

Comparisons joined by ``and``: ``release >= 6.1 and flavour != debug``.  ``release`` compares
versions by as many numbers as the condition has (6.12.117 is ``== 6.12``, not ``> 6.12``); a suffix
such as ``-rc2`` is ignored.  ``profile`` and ``flavour`` compare words.  ``switch == NAME`` holds
if the profile has that switch on.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from conformance.abi.switches import BY_NAME

_COMPARISON = re.compile(r"\s*(\w+)\s*(==|!=|<=|>=|<|>)\s*(\S+)\s*")
_VERSION = re.compile(r"\d{1,9}(\.\d{1,9}){1,2}")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SUBJECTS = ("release", "profile", "flavour", "switch")


class ConditionError(ValueError):
    """An invalid ``when``; the message names the part."""


class KernelContext(Struct, frozen=True):
    """What a condition compares.

    ``release`` is the booted release (``6.12.117``), ``profile`` the ABI that the kernel is judged
    by, ``flavour`` the word after ``~`` in the kernel id, or "", and ``switches`` the dated
    switches that are on.
    """

    release: str
    profile: str
    flavour: str = ""
    switches: frozenset[str] = frozenset()


class Comparison(Struct, frozen=True):
    """One comparison."""

    subject: str
    sign: str
    value: str

    def holds(self, context: KernelContext) -> bool:
        """Whether the comparison is true; always false for a release that is not a version."""
        compare = _OPERATORS[self.sign]
        if self.subject == "switch":
            return (self.value in context.switches) is (self.sign == "==")
        if self.subject != "release":
            actual = context.profile if self.subject == "profile" else context.flavour
            return compare(actual, self.value)
        release = _VERSION.match(context.release)
        if release is None:
            return False
        wanted = _numbers(self.value)
        # The first release of a series has no third number: 6.12 is 6.12.0.
        return compare([*_numbers(release[0]), 0][: len(wanted)], wanted)

    def __str__(self) -> str:
        return f"{self.subject} {self.sign} {self.value}"


class Condition(Struct, frozen=True):
    """Comparisons that must all be true."""

    comparisons: tuple[Comparison, ...]

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Raises ConditionError."""
        return cls(tuple(_comparison(part) for part in re.split(r"\band\b", text)))

    def holds(self, context: KernelContext) -> bool:
        """Whether the condition applies to this kernel."""
        return all(each.holds(context) for each in self.comparisons)

    def __str__(self) -> str:
        return " and ".join(map(str, self.comparisons))


def _comparison(text: str) -> Comparison:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise ConditionError(f"{text.strip()!r} is not a comparison such as release >= 6.1")
    subject, sign, value = found.groups()
    if subject not in _SUBJECTS:
        raise ConditionError(f"{subject!r} is not one of {', '.join(_SUBJECTS)}")
    if subject == "release" and not _VERSION.fullmatch(value):
        raise ConditionError(f"{value!r} is not a release such as 6.12 or 6.12.117")
    if subject != "release" and sign not in ("==", "!="):
        raise ConditionError(f"{subject} can be compared only with == and !=")
    if subject == "switch" and value not in BY_NAME:
        raise ConditionError(f"{value!r} is not a dated switch: see docs/abi.md")
    return Comparison(subject, sign, value)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
