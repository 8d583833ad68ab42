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
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.expectations.condition import Condition, ConditionError, KernelContext
from conformance.expectations.errors import ExpectationError
from conformance.outcome import Blame, CaseResult, Mismatch, Outcome

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

        Raises ExpectationError naming file, key and mend.
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
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExpectationError(
            file, "file", error.strerror or str(error), "make it readable"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ExpectationError(file, "file", f"is not TOML: {error}", "mend its syntax") from error
    tables = document.pop("expectation", [])
    if document:
        key = next(iter(document))
        raise ExpectationError(file, key, "is not known", "put it into an [[expectation]] table")
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise ExpectationError(
            file, "expectation", "is not a list of tables", "write [[expectation]]"
        )
    return [_Table(file, number, table).expectation() for number, table in enumerate(tables, 1)]


@dataclass(frozen=True, slots=True)
class _Table:
    """One ``[[expectation]]`` being read; ``number`` counts them from 1."""

    file: Path
    number: int
    table: dict[str, Any]

    def expectation(self) -> Expectation:
        for key in self.table:
            if key not in (*_REQUIRED, *_OPTIONAL):
                known = ", ".join((*_REQUIRED, *_OPTIONAL))
                raise self._error(key, "is not known", f"use one of {known}")
        for key in _REQUIRED:
            if key not in self.table:
                raise self._error(key, "is missing", f"add {key} = …")
        return Expectation(
            case=self._text("case"),
            steps=self._steps(),
            field=self._text("field"),
            pattern=self._pattern(),
            when=self._condition(),
            reason=self._reason(),
            url=self._text("url") if "url" in self.table else "",
            fixed_by=self._text("fixed_by") if "fixed_by" in self.table else "",
            file=self.file,
            number=self.number,
        )

    def _reason(self) -> str:
        reason = self._text("reason")
        if reason.startswith(TODO):
            mend = "say why the kernel deviates, and who knows of it; or take the table out"
            raise self._error("reason", "is still to be written", mend)
        return reason

    def _text(self, key: str) -> str:
        value = self.table[key]
        if not isinstance(value, str) or not value.strip():
            raise self._error(key, f"is {value!r}", "write a text that is not empty")
        return value.strip()

    def _steps(self) -> frozenset[int] | None:
        value = self.table["step"]
        if value == "any":
            return None
        steps = value if isinstance(value, list) else [value]
        if not steps or not all(type(step) is int and step >= 0 for step in steps):
            raise self._error("step", f"is {value!r}", 'write a number, a list of them, or "any"')
        return frozenset(steps)

    def _pattern(self) -> re.Pattern[str]:
        try:
            with warnings.catch_warnings():
                # Of what Python will read in another way one day.
                warnings.simplefilter("error", FutureWarning)
                return re.compile(self._text("pattern"), re.DOTALL)
        except (re.error, FutureWarning, OverflowError, RecursionError) as error:
            raise self._error("pattern", f"is no regular expression: {error}", "mend it") from error

    def _condition(self) -> Condition:
        try:
            return Condition.parse(self._text("when"))
        except ConditionError as error:
            raise self._error("when", str(error), "write it like release >= 6.1") from error

    def _error(self, key: str, what: str, mend: str) -> ExpectationError:
        return ExpectationError(self.file, f"expectation {self.number}, {key}", what, mend)
