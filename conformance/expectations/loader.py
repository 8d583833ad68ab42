"""Load expectations and apply them to results.

One ``[[expectation]]`` table per deviation; CONTRIBUTING shows how to write one.  Keys:

``case``      a case id; the id of a function stands for all its variants
``step``      the step that deviates, a list of them, or ``"any"``
``field``     what deviates: ``errno``, ``value``, ``data`` or ``memory``
``pattern``   a regular expression for the whole observed text; ``.`` matches newlines
``when``      the kernels it applies to: see ``condition``
``reason``    one sentence for the report
``url``       where the deviation was reported (optional)
``fixed_by``  title of the commit that fixes it (optional)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.expectations import tables
from conformance.expectations.condition import Condition, KernelContext
from conformance.expectations.errors import ExpectationError
from conformance.results.case_result import Blame, CaseResult, Mismatch, Outcome
from host.toml_table import Table, read_list

DIRECTORY = Path(__file__).parent
"""The expectations of this suite."""

NOT_SEEN = "expected and not seen: "
"""Prefix of the reason of an FIXED."""

FIELDS = ("errno", "value", "data", "memory")
"""The parts of an answer that an expectation can cover."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One known deviation, table ``number`` of ``file``; ``steps`` is None for any step."""

    case: str
    steps: frozenset[int] | None
    field: str
    pattern: re.Pattern[str]
    when: Condition
    reason: str
    url: str = ""
    fixed_by: str = ""
    file: Path = Path()
    number: int = 0

    def about(self, case_id: str) -> bool:
        """Whether it names this case, or the function that the case is a variant of."""
        return case_id == self.case or case_id.startswith(f"{self.case}.")

    def covers(self, mismatch: Mismatch) -> bool:
        """Whether the mismatch is exactly the deviation described here."""
        return (
            (self.steps is None or mismatch.step in self.steps)
            # The field of a word is "memory a1 0x2000": the address does not count.
            and mismatch.field.partition(" ")[0] == self.field
            and self.pattern.fullmatch(mismatch.observed) is not None
        )

    def __str__(self) -> str:
        fixed = f' (fixed by "{self.fixed_by}")' if self.fixed_by else ""
        return self.reason + (f" [{self.url}]" if self.url else "") + fixed


@dataclass(frozen=True, slots=True)
class Expectations:
    """All expectations of a suite."""

    entries: tuple[Expectation, ...] = ()

    @classmethod
    def load(cls, directory: Path = DIRECTORY) -> Expectations:
        """Read every ``*.toml`` of ``directory``.

        Raises ExpectationError naming file, key and hint.
        """
        entries: list[Expectation] = []
        for file in sorted(directory.glob("*.toml")):
            entries += _read(file)
        return cls(tuple(entries))

    def applicable(self, context: KernelContext, case_id: str) -> tuple[Expectation, ...]:
        """The expectations for this case on this kernel."""
        return tuple(
            each for each in self.entries if each.about(case_id) and each.when.holds(context)
        )

    def match(
        self, context: KernelContext, case_id: str, mismatches: Sequence[Mismatch]
    ) -> tuple[Expectation, ...]:
        """The expectations that cover the mismatches; empty if one is not covered."""
        applicable = self.applicable(context, case_id)
        covering = [
            next((each for each in applicable if each.covers(mismatch)), None)
            for mismatch in mismatches
        ]
        if None in covering:
            return ()
        return tuple(each for each in applicable if each in covering)

    def judge(self, context: KernelContext, result: CaseResult) -> CaseResult:
        """The result with expectations applied.

        A FAIL blamed on the kernel becomes XFAIL if every mismatch is covered; a PASS becomes
        FIXED if a deviation was expected.  No expectation excuses a crash, a timeout, or an error
        of the suite.
        """
        if result.outcome is Outcome.FAIL and result.blame is Blame.KERNEL:
            known = self.match(context, result.id, result.mismatches)
            return _with(result, Outcome.XFAIL, known) if known else result
        if result.outcome is Outcome.PASS:
            expected = self.applicable(context, result.id)
            return _with(result, Outcome.FIXED, expected) if expected else result
        return result


def _with(result: CaseResult, outcome: Outcome, entries: Sequence[Expectation]) -> CaseResult:
    reason = "; ".join(str(each) for each in entries)
    if outcome is Outcome.FIXED:
        reason = NOT_SEEN + reason
    return replace(result, outcome=outcome, blame=Blame.KERNEL, reason=reason)


def _read(file: Path) -> list[Expectation]:
    found = read_list(file, "expectation", ExpectationError)
    return [_expectation(table, number) for number, table in enumerate(found, 1)]


def _expectation(table: Table, number: int) -> Expectation:
    found = Expectation(
        case=tables.case(table),
        steps=_steps(table),
        field=table.choice("field", FIELDS),
        pattern=table.pattern("pattern", re.DOTALL),
        when=tables.condition(table),
        reason=table.text("reason"),
        url=tables.url(table) if table.has("url") else "",
        fixed_by=table.text("fixed_by", default=""),
        file=table.file,
        number=number,
    )
    table.finish()
    return found


def _steps(table: Table) -> frozenset[int] | None:
    value = table.value("step")
    if value == "any":
        return None
    steps = value if isinstance(value, list) else [value]
    if not steps or not all(type(step) is int and step >= 0 for step in steps):
        raise table.bad("step", f"is {value!r}", 'write a number, a list of them, or "any"')
    return frozenset(steps)
