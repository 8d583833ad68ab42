"""Deletion through dynamic_events: which fields match those of the event.

Kernels before 6.4 compare fields only here.
"""

from conformance.cases.case import UserEvents, doc, surface
from conformance.cases.support.field_pairs import CANONICAL, DIFFERENT, SAME, SELF_MISMATCHES

DOC = (
    "Deleting: dynamic_events deletes one format of an event; silent about what makes formats equal"
)
SPEC = "user_fields_match"
case = surface("grammar", SPEC, DOC, level="behaviour", needs="lasting_events", tier="full")


def created(ue: UserEvents, stem: str, fields: str) -> str:
    """Create an event with these fields by a command; returns its name."""
    ue.tracefs.command(f"u:{ue.name(stem)}{fields}\n")
    return ue.name(stem)


@case
def test_deleted_by_its_fields(ue: UserEvents) -> None:
    """An event is found by its fields, however spaced; old kernels want structs without a size."""
    for stem, (first, second) in SAME.items():
        # Such a text is two lines here.
        if "\n" in second:
            continue
        name = created(ue, stem, first)
        sizeless = second.replace("  20", "").replace(" 20;", ";")
        again = ue.dated("struct_size_matched", since=second, before=sizeless)
        assert ue.tracefs.command(f"-:{name}{again}\n").errno == ""
    assert ue.tracefs.dynamic_events() == ""


@case(tier="quick")
def test_not_deleted_by_other_fields(ue: UserEvents) -> None:
    """With other fields the event is not found: ENOENT, and it stays."""
    kept = []
    errno = ue.dated("deletion_arguments_matched", since="ENOENT", before="")
    for stem, (first, second) in DIFFERENT.items():
        # Without any field the command matched every event of the name.
        if second == "" and not ue.profile.has("null_arguments_matched"):
            continue
        name = created(ue, stem, first)
        kept.append(f"u:{ue.name(stem)}{first}")
        assert ue.tracefs.command(f"-:{name}{second}\n").errno == errno
    left = ue.dated("deletion_arguments_matched", since=kept, before=[])
    assert ue.tracefs.dynamic_events().splitlines() == left


@case(level="detail")
def test_not_deleted_by_its_own_text(ue: UserEvents) -> None:
    """Some definitions do not match their own text: their events cannot be found by it."""
    found = ue.dated("deletion_arguments_matched", since="ENOENT", before="")
    left = ue.dated("deletion_arguments_matched", since="", before="ENOENT")
    for stem, fields in SELF_MISMATCHES.items():
        name = created(ue, stem, fields)
        assert ue.tracefs.command(f"-:{name}{fields}\n").errno == found
        assert ue.open_data().delete(name).errno == left


@case
def test_deleted_by_its_canonical_form(ue: UserEvents) -> None:
    """Such an event is deleted by the line that dynamic_events shows for it."""
    for stem, (fields, shown) in CANONICAL.items():
        created(ue, stem, fields)
        assert ue.tracefs.dynamic_events() == f"u:{ue.name(stem)}{shown}\n"
        sizeless = shown.replace("struct s a 20", "struct s a")
        again = ue.dated("struct_size_matched", since=shown, before=sizeless)
        assert ue.tracefs.command(f"-:{ue.name(stem)}{again}\n").errno == ""


@case(spec="user_field_set_string", needs="lasting_events deletion_arguments_matched")
def test_struct_deleted_by_size(ue: UserEvents) -> None:
    """A struct field is matched by tag, name and size; before sizes were compared, without one."""
    name = created(ue, "e", " struct s a 20; u8 b")
    for fields in ("struct s a 21; u8 b", "struct s a 020; u8 b", "struct s a +20; u8 b"):
        assert ue.tracefs.command(f"-:{name} {fields}\n").errno == "ENOENT"
    sized = ue.dated("struct_size_matched", since="", before="ENOENT")
    sizeless = ue.dated("struct_size_matched", since="ENOENT", before="")
    assert ue.tracefs.command(f"-:{name} struct s a; u8 b\n").errno == sizeless
    ue.tracefs.command(f"u:{name} struct s a 20; u8 b\n")
    assert ue.tracefs.command(f"-:{name} struct s a 20; u8 b\n").errno == sized


@case(spec="user_event_match")
def test_deleted_by_name_alone(ue: UserEvents) -> None:
    """A bare name deletes an event without fields; before 6.4 any event of that name."""
    errno = ue.dated("null_arguments_matched", since="ENOENT", before="")
    for stem, fields in (("a", " u32 x"), ("b", " struct s x 8; u8 y"), ("c", " char[4] x")):
        assert ue.tracefs.command(f"-:{created(ue, stem, fields)}\n").errno == errno
    assert ue.tracefs.command(f"-:{created(ue, 'd', '')}\n").errno == ""
    left = "u:a u32 x\nu:b struct s x 8; u8 y\nu:c char[4] x\n"
    shown = ue.tracefs.dynamic_events().replace(ue.prefix, "")
    assert shown == ue.dated("null_arguments_matched", since=left, before="")


@case(spec="user_event_match", doc="Deleting: silent about the length of a name")
def test_long_names_deleted(ue: UserEvents) -> None:
    """Of two names that differ in the last of 500 characters, the one given is deleted."""
    stem = ue.name().ljust(499, "n")
    ue.tracefs.command(f"u:{stem}a\nu:{stem}b\n")
    assert ue.tracefs.command(f"-:{stem}c\n").errno == "ENOENT"
    assert ue.tracefs.command(f"-:{stem}b\n").errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{stem}a\n"


@case(spec="delete_user_event", tier="quick", isolation="global")
@doc("Deleting: DIAG_IOCSDEL takes the name of the event to delete; silent about the error")
def test_same_bucket(ue: UserEvents) -> None:
    """Names in one bucket of the hash table are found and deleted individually."""
    ue.tracefs.command("u:test\nu:testqw\n")
    data = ue.open_data()
    assert data.delete("testnl").errno == "ENOENT"
    assert data.delete("test").value == 0
    assert ue.tracefs.dynamic_events(whole=True) == "u:testqw\n"
    assert data.delete("testqw").value == 0
