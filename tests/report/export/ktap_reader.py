"""A strict reader of KTAP version 1, written from Documentation/dev-tools/ktap.rst.

It shares no code with the writer, and refuses what the document only discourages.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

_RESULT = re.compile(r"(ok|not ok) (\d+)(?: ([^#\n]*[^#\s]))?(?: # (.*))?")
_DIRECTIVES = {"SKIP", "TODO", "XFAIL", "TIMEOUT", "ERROR"}


class KtapError(AssertionError):
    """A line that KTAP does not allow at its place."""


class Ktap(Struct):
    """One test: ``ok`` from its line, ``directive`` and ``detail`` after the "#".

    ``bailed_out`` is the reason if it has fewer subtests than planned.
    """

    name: str
    ok: bool = True
    directive: str = ""
    detail: str = ""
    subtests: list[Ktap] = field(default_factory=list)
    diagnostics: list[str] = field(default_factory=list)
    bailed_out: str = ""

    def leaves(self) -> list[Ktap]:
        """The tests without subtests, in order."""
        return [leaf for each in self.subtests for leaf in each.leaves()] or [self]


class _Reader:
    def __init__(self, text: str) -> None:
        if not text.endswith("\n"):
            raise KtapError("the last line is cut off")
        self.lines = text[:-1].split("\n")
        self.position = 0

    def peek(self) -> str:
        return self.lines[self.position] if self.position < len(self.lines) else ""

    def block(self, indent: str) -> Ktap:
        test = Ktap("")
        self.expect(f"{indent}KTAP version 1")
        planned = self.plan(indent, test)
        pending: list[str] = []
        nested: Ktap | None = None
        while self.position < len(self.lines):
            line = self.peek()
            if line == f"{indent}  KTAP version 1":
                nested = self.block(f"{indent}  ")
                continue
            if not line.startswith(indent) or line.startswith(f"{indent}Bail out!"):
                break
            self.position += 1
            content = line.removeprefix(indent)
            if content.startswith("# "):
                pending.append(content)
                continue
            result = self.result(content, len(test.subtests) + 1)
            result.subtests = nested.subtests if nested else []
            result.diagnostics = pending
            if result.subtests and result.ok and not all(each.ok for each in result.subtests):
                raise KtapError(f"{result.name} is ok although a subtest is not")
            test.subtests.append(result)
            nested, pending = None, []
        if self.peek().startswith(f"{indent}Bail out!"):
            # TAP's word for a run that ends early, as kselftest.h prints it.
            test.bailed_out = self.peek().removeprefix(f"{indent}Bail out!").strip()
            self.position += 1
        elif len(test.subtests) != planned:
            raise KtapError(f"planned {planned}, found {len(test.subtests)}")
        return test

    def plan(self, indent: str, test: Ktap) -> int:
        while self.peek().startswith(f"{indent}# "):
            test.diagnostics.append(self.peek())
            self.position += 1
        found = re.fullmatch(rf"{indent}1\.\.(\d+)(?: # SKIP (.*))?", self.peek())
        if found is None:
            raise KtapError(f"no plan: {self.peek()!r}")
        if found[2] is not None:
            test.directive, test.detail = "SKIP", found[2]
        self.position += 1
        return int(found[1])

    def result(self, content: str, number: int) -> Ktap:
        found = _RESULT.fullmatch(content)
        if found is None or int(found[2]) != number or not found[3]:
            raise KtapError(f"no result line {number}: {content!r}")
        directive, _, detail = (found[4] or "").partition(" ")
        ok = found[1] == "ok"
        if ok and directive in {"TIMEOUT", "ERROR"}:
            raise KtapError(f"{directive} cannot be ok: {content!r}")
        if ok and directive and directive not in _DIRECTIVES:
            raise KtapError(f"a reader would take this for a plain ok: {content!r}")
        return Ktap(found[3], ok, directive, detail)

    def expect(self, line: str) -> None:
        if self.peek() != line:
            raise KtapError(f"expected {line!r}, found {self.peek()!r}")
        self.position += 1


def read_ktap(text: str) -> Ktap:
    """Read a document.  Raises KtapError."""
    reader = _Reader(text)
    top = reader.block("")
    if reader.position < len(reader.lines):
        raise KtapError(f"a line after the last: {reader.peek()!r}")
    return top
