"""Reading expectations and applying them to results.

One ``[[expectation]]`` table per deviation; CONTRIBUTING shows how to write one.  Keys:

``case``      a case id; the id of a function stands for all its variants
``step``      the step that deviates, a list of them, or ``"any"``
``field``     what deviates: ``errno``, ``value``, ``data``, ``memory`` or ``literal``
``pattern``   a regular expression the whole observed text must match; ``.`` matches newlines
``when``      for which kernels it is meant: see ``condition``
``reason``    one sentence for the report; one that begins with TODO is still to be written
``url``       where it was reported (optional)
``fixed_by``  title of the commit that mends it (optional)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.expectations.condition import Condition, KernelContext
from conformance.expectations.tables import Table, read_tables
from conformance.results.case_result import Blame, CaseResult, Mismatch, Outcome

DIRECTORY = Path(__file__).parent
"""Where the expectations of this suite are kept."""

TODO = "TODO"
"""What the reason of a proposed expectation begins with, until a person has written one."""

NOT_SEEN = "expected and not seen: "
"""What the reason of an XPASS begins with."""

_REQUIRED = ("case", "step", "field", "pattern", "when", "reason")
_OPTIONAL = ("url", "fixed_by")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One known deviation.  ``steps`` is None when it may be seen at any step.

    ``file`` holds it, as its ``number``th table, counted from 1.
    """

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
        """Whether it speaks of this case, or of the function this is a variant of."""
        return case_id == self.case or case_id.startswith(f"{self.case}.")

    def covers(self, mismatch: Mismatch) -> bool:
        """Whether the mismatch is the deviation described here, and nothing else."""
        return (
            (self.steps is None or mismatch.step in self.steps)
            # "memory a1 0x2000" is of the field memory, wherever it lies.
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
        """The expectations about this case that are meant for this kernel."""
        return tuple(
            each for each in self.entries if each.about(case_id) and each.when.holds(context)
        )

    def match(
        self, context: KernelContext, case_id: str, mismatches: Sequence[Mismatch]
    ) -> tuple[Expectation, ...]:
        """The expectations that cover *every* mismatch; none when one is not covered."""
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

        FAIL blamed on the kernel becomes XFAIL when every mismatch is covered, PASS
        becomes XPASS when a deviation was expected.  Everything else stays as it is: no
        expectation excuses a crash, a time-out, or a mistake of the suite's own.
        """
        if result.outcome is Outcome.FAIL and result.blame is Blame.KERNEL:
            known = self.match(context, result.id, result.mismatches)
            return _with(result, Outcome.XFAIL, known) if known else result
        if result.outcome is Outcome.PASS:
            expected = self.applicable(context, result.id)
            return _with(result, Outcome.XPASS, expected) if expected else result
        return result


def _with(result: CaseResult, outcome: Outcome, entries: Sequence[Expectation]) -> CaseResult:
    reason = "; ".join(str(each) for each in entries)
    if outcome is Outcome.XPASS:
        reason = NOT_SEEN + reason
    return replace(result, outcome=outcome, blame=Blame.KERNEL, reason=reason)


def _read(file: Path) -> list[Expectation]:
    return [
        _expectation(Table(file, number, table, "expectation"))
        for number, table in enumerate(read_tables(file, "expectation"), 1)
    ]


def _expectation(table: Table) -> Expectation:
    table.check_keys(_REQUIRED, _OPTIONAL)
    return Expectation(
        case=table.text("case"),
        steps=_steps(table),
        field=table.text("field"),
        pattern=table.pattern(re.DOTALL),
        when=table.condition(),
        reason=_reason(table),
        url=table.optional_text("url"),
        fixed_by=table.optional_text("fixed_by"),
        file=table.file,
        number=table.number,
    )


def _reason(table: Table) -> str:
    reason = table.text("reason")
    if reason.startswith(TODO):
        hint = "say why the kernel deviates, and who knows of it; or take the table out"
        raise table.error("reason", "is still to be written", hint)
    return reason


def _steps(table: Table) -> frozenset[int] | None:
    value = table.table["step"]
    if value == "any":
        return None
    steps = value if isinstance(value, list) else [value]
    if not steps or not all(type(step) is int and step >= 0 for step in steps):
        raise table.error("step", f"is {value!r}", 'write a number, a list of them, or "any"')
    return frozenset(steps)
