"""Cases with the mistakes that authors of cases make."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface("drill", level="contract")


@case
def test_name(ue: UserEvents) -> None:
    """A name is misspelt."""
    assert eu.event("u32 a").write(bytes(4)).value == 8  # type: ignore[name-defined] # noqa: F821


@case
def test_argument(eu: UserEvents) -> None:
    """An argument of the case is misspelt."""
    assert eu.event("u32 a").write(bytes(4)).value == 8


@case
def test_returned(ue: UserEvents) -> None:
    """The literal is wrong."""
    assert ue.event("u32 a", enabled=True).write(bytes(4)).value == 9


@case
def test_derived(ue: UserEvents) -> None:
    """The literal for a derived value is wrong."""
    ue.event("u32 a", enabled=True).write(bytes(4))
    assert len(ue.tracefs.records()) + 1 == 3


@case
def test_computed(ue: UserEvents) -> None:
    """The literal for a number that the model leaves open is wrong."""
    before = ue.process.kernel_memory()
    assert ue.process.kernel_memory() - before < 0
