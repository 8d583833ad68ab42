"""The output of upstream's test programs (kselftest_harness.h)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

NOT_BEGUN = "not_begun"
"""The name that stands for tests without one."""


class Result(StrEnum):
    """The result of one upstream test."""

    OK = "ok"
    NOT_OK = "not ok"
    SKIP = "skip"
    #: The program ended, or was ended, before it printed one.
    NONE = "no result"


class Selftest(Struct, frozen=True):
    """One test of a program; ``why`` are the lines about its failure."""

    program: str
    name: str
    result: Result
    why: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Program and test, such as ``dyn.matching``."""
        return f"{self.program.removesuffix('_test')}.{self.name}"


_PLAN = re.compile(r"1\.\.(\d+)$")
_RUN = re.compile(r"# +RUN +(?:\w+\.)+(\w+) \.\.\.$")
_LINE = re.compile(r"(ok|not ok) \d+ (?:- )?(?:\w+\.)*(\w+)(.*)$")
# A failed assertion: the file, its line, the name of the test, and what was expected.
_FAILED = re.compile(r"# \S*/(\w+\.c:\d+):(\w+):(.*)$")


def read_selftests(program: str, output: str) -> Iterator[Selftest]:
    """The tests in the output of a program, in the order in which they began.

    Those of the plan that did not begin are one more, NOT_BEGUN; a program has a test at least.
    """
    planned = 1
    begun: dict[str, Result] = {}
    why: dict[str, list[str]] = {}
    for line in output.splitlines():
        if found := _PLAN.match(line):
            planned = max(1, int(found[1]))
        elif found := _RUN.match(line):
            begun[found[1]] = Result.NONE
        elif (found := _LINE.match(line)) and found[2] in begun:
            skipped = "SKIP" in found[3]
            begun[found[2]] = Result.SKIP if skipped else Result(found[1])
        elif found := _FAILED.match(line):
            why.setdefault(found[2], []).append(f"{found[1]}: {found[3]}")
    for name, result in begun.items():
        yield Selftest(program, name, result, tuple(why.get(name, ())))
    if len(begun) < planned:
        reason = f"{len(begun)} of {planned} tests began: the program ended early"
        yield Selftest(program, NOT_BEGUN, Result.NONE, (reason,))
