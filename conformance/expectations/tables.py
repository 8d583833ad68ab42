"""Read the keys that expectations and rules share."""

from __future__ import annotations

from conformance.expectations.condition import Condition, ConditionError
from conformance.results.case_result import CASE_ID
from host.toml_table import Table


def case(table: Table) -> str:
    """The id of a case or of a function."""
    id = table.text("case")
    if not CASE_ID.fullmatch(id):
        raise table.bad("case", f"is {id!r}", "write surface.name or surface.name.variant")
    return id


def url(table: Table) -> str:
    """A web address."""
    url = table.text("url")
    if not url.startswith(("https://", "http://")):
        raise table.bad("url", f"is {url!r}", "write https://…")
    return url


def condition(table: Table) -> Condition:
    """The condition of the key ``when``."""
    try:
        return Condition.parse(table.text("when"))
    except ConditionError as error:
        raise table.bad("when", str(error), "write it like release >= 6.1") from error
