"""The ``when`` of an expectation: for which kernels it is meant.

Comparisons joined by ``and``: ``release >= 6.1 and flavour != debug``.  ``release`` is compared
as a version, with as many parts as the condition writes (6.12.117 is ``== 6.12``, and not
``> 6.12``); what follows the numbers, such as ``-rc2``, does not count.  ``profile`` and
``flavour`` are compared as words.  ``switch == NAME`` asks whether the profile has a switch.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_TEST = re.compile(r"\s*(\w+)\s*(==|!=|<=|>=|<|>)\s*(\S+)\s*")
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
    """A ``when`` that cannot be read; the message says which part."""


@dataclass(frozen=True, slots=True)
class KernelContext:
    """What a condition can ask about a run.

    ``release`` is the booted release (``6.12.117``), ``profile`` the name of the contract
    it is judged by, ``flavour`` the word behind ``~`` in the kernel id, or "", and
    ``switches`` the dated switches that the contract has.
    """

    release: str
    profile: str
    flavour: str = ""
    switches: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison."""

    subject: str
    sign: str
    value: str

    def holds(self, context: KernelContext) -> bool:
        """Whether the comparison is true; a release that is no version fails every one."""
        compare = _OPERATORS[self.sign]
        if self.subject == "switch":
            return (self.value in context.switches) is (self.sign == "==")
        if self.subject != "release":
            actual = context.profile if self.subject == "profile" else context.flavour
            return compare(actual, self.value)
        found = release_numbers(context.release)
        if found is None:
            return False
        wanted = _numbers(self.value)
        return compare(found[: len(wanted)], wanted)

    def __str__(self) -> str:
        return f"{self.subject} {self.sign} {self.value}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Comparisons that must all be true."""

    comparisons: tuple[Comparison, ...]

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Raises ConditionError naming the part that is wrong."""
        return cls(tuple(_comparison(part) for part in re.split(r"\band\b", text)))

    def holds(self, context: KernelContext) -> bool:
        """Whether the condition is meant for this kernel."""
        return all(each.holds(context) for each in self.comparisons)

    def __str__(self) -> str:
        return " and ".join(map(str, self.comparisons))


def release_numbers(release: str) -> list[int] | None:
    """The three numbers of a release; None for what is no release.

    One without a third number is the first of its series: 6.12 is 6.12.0.
    """
    found = _VERSION.match(release)
    return None if found is None else [*_numbers(found[0]), 0][:3]


def _comparison(text: str) -> Comparison:
    found = _TEST.fullmatch(text)
    if found is None:
        raise ConditionError(f"{text.strip()!r} is no comparison such as release >= 6.1")
    subject, sign, value = found.groups()
    if subject not in _SUBJECTS:
        raise ConditionError(f"{subject!r} is none of {', '.join(_SUBJECTS)}")
    if subject == "release" and not _VERSION.fullmatch(value):
        raise ConditionError(f"{value!r} is no release such as 6.12 or 6.12.117")
    if subject != "release" and sign not in ("==", "!="):
        raise ConditionError(f"{subject} is compared with == or != only")
    return Comparison(subject, sign, value)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
