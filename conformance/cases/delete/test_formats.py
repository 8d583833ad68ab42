"""DIAG_IOCSDEL of a name with several formats: newest first, up to one that must stay.

More cases of formats are in registration/test_multi_format_delete; new ones belong there.
"""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.registration import MULTI_FORMAT, PERSIST
from conformance.client.user_events import UserEvents

case = surface(
    "delete",
    spec="trace_events_user.c:delete_user_event",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: all formats of a name are attempted",
    profiles="6.4..",
    needs="multi_format arguments_matched persist",
    tier="full",
)


@case
def test_all_formats(ue: UserEvents) -> None:
    """All formats of a name are deleted, and so is the single-format event of that name."""
    data = ue.open_data()
    for fields, flags in (("u32 a", 3), ("u64 b", 3), ("u8 c", PERSIST)):
        data.register(f"{ue.name()} {fields}", flags=flags, enable_addr=0)
    data.close()
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.dynamic_events() == ""


@case
@variants(
    ("oldest-busy", 0, ["u32 a"]),
    ("middle-busy", 1, ["u32 a", "u64 b"]),
    ("newest-busy", 2, ["u32 a", "u64 b", "u8 c"]),
)
def test_formats_up_to_the_busy_one(ue: UserEvents, held: int, left: list[str]) -> None:
    """Formats are deleted newest first up to one in use; the call still fails with EBUSY."""
    files = [ue.open_data() for _ in range(3)]
    for data, fields in zip(files, ("u32 a", "u64 b", "u8 c"), strict=True):
        data.register(f"{ue.name()} {fields}", flags=PERSIST | MULTI_FORMAT, enable_addr=0)
    for data in files:
        if data is not files[held]:
            data.close()
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == "".join(f"u:{ue.name()} {text}\n" for text in left)


@case
def test_formats_forbidden(ue: UserEvents) -> None:
    """If the newest format may not be deleted the call fails with EPERM and all formats stay."""
    keeper = ue.open_data()
    for fields in ("u32 a", "u64 b"):
        keeper.register(f"{ue.name()} {fields}", flags=PERSIST | MULTI_FORMAT, enable_addr=0)
    data = ue.open_data()
    keeper.close()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "EPERM"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\nu:{ue.name()} u64 b\n"
