"""Allow-listed kernel reports: each with a reason, a link and an expiry date.

One ``[[allow]]`` table per rule in ``*.toml``.  Keys:

``kind``         what the report is: ``warn``, ``bug``, ``kasan``, ``lockdep`` …
``fingerprint``  fingerprint of the report, or its first functions
``pattern``      a regular expression for its whole first line; this, ``fingerprint``, or both
``case``         a case id, or that of a function (optional)
``when``         the kernels it applies to: see ``condition``
``reason``       one sentence for the report
``url``          where it was reported
``expires``      the last day on which the rule holds, a TOML date

No rule excuses a crash or an OOM kill.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from conformance.allowed_reports.condition import Condition, ConditionError, KernelContext
from conformance.results.case_result import CASE_ID, Report
from host.errors import FileError
from host.kernel_reports import CRASHES, ReportKind
from host.toml_table import Table, read_list

DIRECTORY = Path(__file__).parent
"""The rules of this suite."""


class RuleError(FileError):
    """An invalid or expired rule."""


_EITHER = ("fingerprint", "pattern")
_NEVER = CRASHES | {ReportKind.OUT_OF_MEMORY}


class Rule(Struct, frozen=True):
    """One rule; ``fingerprint`` "" and ``pattern`` None match every report of the kind."""

    kind: str
    fingerprint: str
    pattern: re.Pattern[str] | None
    case: str
    when: Condition
    reason: str
    url: str
    expires: date

    def covers(self, context: KernelContext, case_id: str, report: Report) -> bool:
        """Whether this kernel may print the report during this case."""
        return (
            report.kind == self.kind
            and (not self.case or case_id == self.case or case_id.startswith(f"{self.case}."))
            # Whole functions only: warn:a/b begins warn:a/b/c, not warn:a/bc.
            and f"{report.fingerprint}/".startswith(self.fingerprint and f"{self.fingerprint}/")
            and (self.pattern is None or self.pattern.fullmatch(report.title) is not None)
            and self.when.holds(context)
        )

    def __str__(self) -> str:
        return f"{self.reason} [{self.url}] until {self.expires}"


class Allowed(Struct, frozen=True):
    """All rules of a suite."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def load(cls, today: date, directory: Path = DIRECTORY) -> Allowed:
        """Read every ``*.toml`` of ``directory``.

        Raises RuleError naming file, key and hint, also for an expired rule.
        """
        rules: list[Rule] = []
        for file in sorted(directory.glob("*.toml")):
            rules += [_rule(each, today) for each in read_list(file, "allow", RuleError)]
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


def _rule(table: Table, today: date) -> Rule:
    if not any(table.has(key) for key in _EITHER):
        raise table.bad("fingerprint", "is missing", "add fingerprint = … or pattern = …")
    kind = _kind(table)
    rule = Rule(
        kind=kind,
        fingerprint=_fingerprint(table, kind),
        pattern=table.pattern("pattern") if table.has("pattern") else None,
        case=_case(table) if table.has("case") else "",
        when=_condition(table),
        reason=table.text("reason"),
        url=_url(table),
        expires=_expires(table, today),
    )
    table.finish()
    return rule


def _kind(table: Table) -> str:
    kind = table.choice("kind", tuple(ReportKind))
    if kind in _NEVER:
        raise table.bad("kind", f"is {kind!r}", "fix the kernel: no rule excuses that")
    return kind


def _fingerprint(table: Table, kind: str) -> str:
    fingerprint = table.text("fingerprint", default="")
    if fingerprint and not fingerprint.startswith(f"{kind}:"):
        raise table.bad("fingerprint", f"is not of a {kind}", f"begin it with {kind}:")
    return fingerprint


def _expires(table: Table, today: date) -> date:
    value = table.value("expires")
    if not isinstance(value, date) or isinstance(value, datetime):
        raise table.bad("expires", f"is {value!r}", "write a date, as 2027-06-30")
    if value < today:
        hint = "remove the rule if its cause is gone, else check it and set a later date"
        raise table.bad("expires", f"was {value}: {table.text('reason')}", hint)
    return value


def _case(table: Table) -> str:
    """The id of a case or of a function."""
    id = table.text("case")
    if not CASE_ID.fullmatch(id):
        raise table.bad("case", f"is {id!r}", "write surface.name or surface.name.variant")
    return id


def _url(table: Table) -> str:
    url = table.text("url")
    if not url.startswith(("https://", "http://")):
        raise table.bad("url", f"is {url!r}", "write https://…")
    return url


def _condition(table: Table) -> Condition:
    try:
        return Condition.parse(table.text("when"))
    except ConditionError as error:
        raise table.bad("when", str(error), "write it like release >= 6.1") from error
