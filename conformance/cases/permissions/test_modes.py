"""File modes and owners: what an unprivileged user may do."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.tracefs_permissions import (
    USER,
    open_to_users,
    restrict_again,
    try_open,
)
from conformance.client.credentials import Credentials
from conformance.client.tracefs import DATA, DYNAMIC_EVENTS, MAXIMUM, ROOT, STATUS

DOC = "Overview: programs use files of tracefs; silent about the rights that they need"
case = surface("rights", spec="create_user_tracefs", doc=DOC, level="behaviour", isolation="global")


@case(isolation="none", switch="tracefs-root-mode")
@variants(
    ("root", ROOT, 0o700, 0o755),
    ("data", DATA, 0o640, 0o640),
    ("dynamic_events", DYNAMIC_EVENTS, 0o640, 0o640),
)
def test_owners(ue: UserEvents, path: str, mode: int, mode_with_bug: int) -> None:
    """The files belong to root, and only root can reach them."""
    root = Credentials(ue.process)
    assert root.mode(path) == ue.bug("tracefs-root-mode", fixed=mode, present=mode_with_bug)
    assert root.owner(path) == "0:0"


@case(spec="fs/tracefs/inode.c:tracefs_apply_options", level="detail")
@variants(
    ("data", DATA, os.O_RDWR),
    ("data-read-only", DATA, os.O_RDONLY),
    ("dynamic_events", DYNAMIC_EVENTS, os.O_RDONLY),
    ("not-there", f"{ROOT}/user_events_nothing", os.O_RDONLY),
)
def test_no_way_in(ue: UserEvents, path: str, flags: int) -> None:
    """The mode of a file does not help a user who cannot enter tracefs: EACCES."""
    administrator = Credentials(ue.new_process())
    administrator.chmod(ROOT, 0o700)
    administrator.chmod(DATA, 0o666)
    administrator.chmod(DYNAMIC_EVENTS, 0o666)
    Credentials(ue.process).become(USER)
    assert try_open(ue.process, path, flags).errno == "EACCES"


@case(spec="fs/namei.c:generic_permission", level="detail", tier="full")
@variants(
    # For O_RDONLY, O_WRONLY, and O_RDWR or O_ACCMODE.
    ("everybody", 0o666, (0, 0), (), ("", "", "")),
    ("as-it-is", 0o640, (0, 0), (), ("EACCES", "EACCES", "EACCES")),
    ("readers", 0o644, (0, 0), (), ("", "EACCES", "EACCES")),
    ("writers", 0o642, (0, 0), (), ("EACCES", "", "EACCES")),
    ("group", 0o660, (0, 1000), (), ("", "", "")),
    ("group-reads", 0o640, (0, 1000), (), ("", "EACCES", "EACCES")),
    ("second-group", 0o660, (0, 77), (77,), ("", "", "")),
    ("other-group", 0o660, (0, 77), (78,), ("EACCES", "EACCES", "EACCES")),
    ("group-before-others", 0o606, (0, 1000), (), ("EACCES", "EACCES", "EACCES")),
    ("owner", 0o600, (1000, 0), (), ("", "", "")),
    ("owner-before-group", 0o066, (1000, 1000), (), ("EACCES", "EACCES", "EACCES")),
)
def test_open_modes(
    ue: UserEvents,
    mode: int,
    owner: tuple[int, int],
    groups: tuple[int, ...],
    answers: tuple[str, str, str],
) -> None:
    """A user who can enter tracefs opens the data file as its mode permits."""
    open_to_users(ue, data=mode).chown(DATA, *owner)
    Credentials(ue.process).become(USER, USER, *groups)
    assert try_open(ue.process, DATA, os.O_RDONLY).errno == answers[0]
    assert try_open(ue.process, DATA, os.O_WRONLY).errno == answers[1]
    assert try_open(ue.process, DATA, os.O_RDWR).errno == answers[2]
    assert try_open(ue.process, DATA, os.O_ACCMODE).errno == answers[2]


@case(spec="user_event_set_call_visible", needs="events_made_as_root payload_size_checked")
def test_ordinary_user_takes_part(ue: UserEvents) -> None:
    """With access to the data file alone, an unprivileged user creates and writes an event."""
    open_to_users(ue)
    Credentials(ue.process).become(USER)
    data = ue.open_data()
    event = data.register(f"{ue.name()} u32 a")
    assert (event.value, event.index) == (0, 0)
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    assert ue.tracefs.enable(ue.name()).errno == ""
    assert data.write_event(0, b"\x05\0\0\0").value == 8
    assert ue.tracefs.records() == [ue.line("a=0x5 (5)", dump="05 00 00 00")]


@case(profiles="6.4..", needs="auto_delete", tier="full")
@spec("user_event_set_call_visible, destroy_user_event")
def test_ordinary_user_removes(ue: UserEvents) -> None:
    """An event and its directory are deleted when an unprivileged user drops the last reference."""
    open_to_users(ue)
    Credentials(ue.process).become(USER)
    ue.event()
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(profiles="5.18..6.3", needs="events_made_as_root", without="auto_delete persist", tier="full")
@doc("@v6.1: Deleting: an ioctl of user_events_data; silent about the rights that it needs")
@spec("user_event_set_call_visible, delete_user_event")
def test_ordinary_user_deletes(ue: UserEvents) -> None:
    """Before auto-delete, an unprivileged user could delete any unreferenced event."""
    open_to_users(ue)
    ue.tracefs.command(f"u:{ue.name()} u32 a\n")
    Credentials(ue.process).become(USER)
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.dynamic_events() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(spec="user_events_ioctl")
@doc("Registering: an ioctl of user_events_data; silent about open modes")
def test_reading_is_enough_to_register(ue: UserEvents) -> None:
    """A user with read access to the data file registers and deletes, but cannot write: EBADF."""
    open_to_users(ue, data=0o644)
    Credentials(ue.process).become(USER)
    data = ue.open_data(os.O_RDONLY)
    assert data.register(ue.name()).errno == ""
    assert data.delete(ue.name()).errno == "EBUSY"
    assert data.write_event(0).errno == "EBADF"


@case(profiles="6.4..", needs="remote_enable")
@doc("Status: administrators read the file; silent about its mode")
@variants(("as-it-is", 0o440, "EACCES"), ("readable", 0o444, ""))
def test_status_for_users(ue: UserEvents, mode: int, errno: str) -> None:
    """The status file is not needed to register or write; reading it depends on its mode."""
    open_to_users(ue).chmod(STATUS, mode)
    Credentials(ue.process).become(USER)
    assert ue.open_data().register(ue.name()).errno == ""
    seen = Credentials(ue.process).read(STATUS, ue.prefix)
    assert (seen.errno, seen.text) == (errno, "" if errno else f"{ue.name()}\n")


@case(spec="fs/attr.c:setattr_prepare", level="detail")
def test_nobody_but_the_owner(ue: UserEvents) -> None:
    """A user of the data file cannot change its mode: EPERM; its owner can."""
    administrator = open_to_users(ue)
    user = Credentials(ue.process)
    user.become(USER)
    assert (user.chmod(DATA, 0o600).errno, user.chown(DATA, USER, USER).errno) == ("EPERM", "EPERM")
    administrator.chown(DATA, USER, USER)
    assert (user.chmod(DATA, 0o604).errno, user.chown(DATA, 0, 0).errno) == ("", "EPERM")
    assert user.mode(DATA) == 0o604
    assert user.owner(DATA) == "1000:1000"


@case(profiles="6.4..", needs="persist", tier="full")
def test_modes_outlive_events(ue: UserEvents) -> None:
    """Modes belong to the file: they stay when events come and go, and for open descriptors."""
    administrator = open_to_users(ue)
    Credentials(ue.process).become(USER)
    data = ue.open_data()
    restrict_again(administrator)
    assert try_open(ue.process, DATA).errno == "EACCES"
    assert data.register(ue.name()).errno == ""
    assert administrator.mode(DATA) == 0o640


@case(level="contract", profiles="6.4..", needs="persist null_arguments_matched")
@spec("user_event_parse, user_event_free")
@doc("Overview: dynamic_events requires CAP_PERFMON, otherwise -EPERM")
def test_dynamic_events_for_users(ue: UserEvents) -> None:
    """A user with write access to dynamic_events creates and deletes nothing: EPERM."""
    open_to_users(ue).chmod(DYNAMIC_EVENTS, 0o666)
    ue.tracefs.command(f"u:{ue.name('old')}\n")
    user = Credentials(ue.process)
    user.become(USER)
    assert user.write(DYNAMIC_EVENTS, f"u:{ue.name('new')}\n").errno == "EPERM"
    assert user.write(DYNAMIC_EVENTS, f"-:{ue.name('old')}\n").errno == "EPERM"
    assert user.write(DYNAMIC_EVENTS, f"-:{ue.name('none')}\n").errno == "ENOENT"
    assert user.read(DYNAMIC_EVENTS, ue.prefix).text == f"u:{ue.name('old')}\n"


@case(profiles="6.4..", isolation="events")
@doc("Documentation/admin-guide/sysctl/kernel.rst@v6.12: user_events_max is not described;")
@doc("silent about its mode")
@spec("user_event_sysctls; fs/proc/proc_sysctl.c:test_perm")
def test_sysctl(ue: UserEvents) -> None:
    """Every user reads the event limit, and only root sets it."""
    root = Credentials(ue.process)
    assert (root.mode(MAXIMUM), root.owner(MAXIMUM)) == (0o644, "0:0")
    root.become(USER)
    assert root.read(MAXIMUM).text == "32768\n"
    assert root.write(MAXIMUM, "1\n").errno == "EACCES"
