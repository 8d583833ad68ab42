"""A case that panics its guest, between two that pass."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface(
    "drill",
    doc="Documentation/admin-guide/sysrq.rst@v6.12: c performs a system crash",
    level="contract",
)


@case
def test_before(ue: UserEvents) -> None:
    """The guest works before the panic."""
    assert ue.open_data().register(ue.name()).index == 0


@case(spec="drivers/tty/sysrq.c:sysrq_handle_crash", isolation="fatal")
def test_panic(ue: UserEvents) -> None:
    """The guest panics."""
    assert ue.tracefs.write("/proc/sysrq-trigger", "c").value == 1


@case
def test_after(ue: UserEvents) -> None:
    """Another guest works afterwards."""
    assert ue.open_data().register(ue.name("after")).index == 0
