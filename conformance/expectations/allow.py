"""Rules that let a report on the console pass: with a reason, a link and a last day.

One ``[[allow]]`` table per rule in ``allowed/*.toml``.  Keys:

``kind``         what the report is: ``warn``, ``bug``, ``kasan``, ``lockdep`` …
``fingerprint``  that of the report, or the first functions of it
``pattern``      a regular expression its whole first line must match; this or the former, or both
``case``         a case id, or that of a function (optional)
``when``         for which kernels it is meant: see ``condition``
``reason``       one sentence for the report
``url``          where it was reported
``expires``      the last day on which it holds, a TOML date

Nothing excuses a kernel that crashed, and nothing a process that was killed for want of memory.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from conformance.expectations.condition import Condition, ConditionError, KernelContext
from conformance.expectations.errors import ExpectationError
from conformance.outcome import CRASHING, Report, ReportKind

DIRECTORY = Path(__file__).parent / "allowed"
"""Where the rules of this suite are kept."""

_REQUIRED = ("kind", "when", "reason", "url", "expires")
_EITHER = ("fingerprint", "pattern")
_KEYS = (*_REQUIRED, *_EITHER, "case")
_NEVER = CRASHING | {ReportKind.OUT_OF_MEMORY}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; ``fingerprint`` "" and ``pattern`` None fit every report of the kind."""

    kind: str
    fingerprint: str
    pattern: re.Pattern[str] | None
    case: str
    when: Condition
    reason: str
    url: str
    expires: date

    def covers(self, context: KernelContext, case_id: str, report: Report) -> bool:
        """Whether this kernel may report that during this case."""
        return (
            report.kind == self.kind
            and (not self.case or case_id == self.case or case_id.startswith(f"{self.case}."))
            and _begins(report.fingerprint, self.fingerprint)
            and (self.pattern is None or self.pattern.fullmatch(report.title) is not None)
            and self.when.holds(context)
        )

    def __str__(self) -> str:
        return f"{self.reason} [{self.url}] until {self.expires}"


@dataclass(frozen=True, slots=True)
class Allowed:
    """All rules of a suite."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def load(cls, today: date, directory: Path = DIRECTORY) -> Allowed:
        """Read every ``*.toml`` of ``directory``.

        Raises ExpectationError naming file, key and mend, for a rule that has expired too.
        """
        rules: list[Rule] = []
        for file in sorted(directory.glob("*.toml")):
            rules += _read(file, today)
        return cls(tuple(rules))

    def excuse(
        self, context: KernelContext, case_id: str, reports: Iterable[Report]
    ) -> tuple[Report, ...]:
        """The reports, each with the rule that covers it."""
        found = []
        for report in reports:
            rule = next((one for one in self.rules if one.covers(context, case_id, report)), None)
            found.append(report if rule is None else replace(report, allowed=str(rule)))
        return tuple(found)


def _begins(fingerprint: str, rule: str) -> bool:
    """Whether a fingerprint begins with whole functions of a rule's, which may have none."""
    return not rule or f"{fingerprint}/".startswith(f"{rule}/")


def _read(file: Path, today: date) -> list[Rule]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExpectationError(
            file, "file", error.strerror or str(error), "make it readable"
        ) from error
    except ValueError as error:
        raise ExpectationError(file, "file", f"is not TOML: {error}", "mend its syntax") from error
    tables = document.pop("allow", [])
    if document:
        key = next(iter(document))
        raise ExpectationError(file, key, "is not known", "put it into an [[allow]] table")
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise ExpectationError(file, "allow", "is not a list of tables", "write [[allow]]")
    return [_Table(file, number, table).rule(today) for number, table in enumerate(tables, 1)]


@dataclass(frozen=True, slots=True)
class _Table:
    """One ``[[allow]]`` being read; ``number`` counts them from 1."""

    file: Path
    number: int
    table: dict[str, Any]

    def rule(self, today: date) -> Rule:
        for key in self.table:
            if key not in _KEYS:
                raise self._error(key, "is not known", f"use one of {', '.join(_KEYS)}")
        for key in _REQUIRED:
            if key not in self.table:
                raise self._error(key, "is missing", f"add {key} = …")
        if not any(key in self.table for key in _EITHER):
            raise self._error("fingerprint", "is missing", "add fingerprint = … or pattern = …")
        return Rule(
            kind=self._kind(),
            fingerprint=self._fingerprint(),
            pattern=self._pattern(),
            case=self._text("case") if "case" in self.table else "",
            when=self._condition(),
            reason=self._text("reason"),
            url=self._text("url"),
            expires=self._expires(today),
        )

    def _text(self, key: str) -> str:
        value = self.table[key]
        if not isinstance(value, str) or not value.strip():
            raise self._error(key, f"is {value!r}", "write a text that is not empty")
        return value.strip()

    def _kind(self) -> str:
        kind = self._text("kind")
        if kind not in set(ReportKind):
            raise self._error("kind", f"is {kind!r}", f"use one of {', '.join(ReportKind)}")
        if kind in _NEVER:
            raise self._error("kind", f"is {kind!r}", "mend the kernel: no rule excuses that")
        return kind

    def _fingerprint(self) -> str:
        if "fingerprint" not in self.table:
            return ""
        fingerprint, kind = self._text("fingerprint"), self._kind()
        if not fingerprint.startswith(f"{kind}:"):
            raise self._error("fingerprint", f"is not of a {kind}", f"begin it with {kind}:")
        return fingerprint

    def _pattern(self) -> re.Pattern[str] | None:
        if "pattern" not in self.table:
            return None
        try:
            return re.compile(self._text("pattern"))
        except re.error as error:
            raise self._error("pattern", f"is no regular expression: {error}", "mend it") from error

    def _condition(self) -> Condition:
        try:
            return Condition.parse(self._text("when"))
        except ConditionError as error:
            raise self._error("when", str(error), "write it like release >= 6.1") from error

    def _expires(self, today: date) -> date:
        value = self.table["expires"]
        if not isinstance(value, date) or isinstance(value, datetime):
            raise self._error("expires", f"is {value!r}", "write a date, as 2027-06-30")
        if value < today:
            raise self._error(
                "expires",
                f"was {value}: {self._text('reason')}",
                "remove the rule if its cause is gone, or look at it anew and set another day",
            )
        return value

    def _error(self, key: str, what: str, mend: str) -> ExpectationError:
        return ExpectationError(self.file, f"rule {self.number}, {key}", what, mend)
