"""Capabilities: which ones a persistent event needs, from which process, and when."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.registration import PERSIST
from conformance.cases.support.tracefs_permissions import USER, try_open
from conformance.client.credentials import Credentials
from conformance.client.files import File
from conformance.client.tracefs import DATA, DYNAMIC_EVENTS, MAXIMUM, STATUS
from conformance.ops.credentials import Capability

SPEC = "user_event_capable"
DOC = "Overview: nothing is said of the rights that the files take"
case = surface("rights", SPEC, DOC, level="contract", profiles="6.4..", needs="persist")

# Of the 41, CAP_SYS_ADMIN suffices as well as CAP_PERFMON.
NOT_ENOUGH = [
    *("bpf", "sys_ptrace", "syslog", "setpcap", "chown", "dac_override", "dac_read_search"),
    *("fowner", "fsetid", "kill", "setgid", "setuid", "linux_immutable", "net_bind_service"),
    *("net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner", "sys_module", "sys_rawio"),
    *("sys_chroot", "sys_pacct", "sys_boot", "sys_nice", "sys_resource", "sys_time"),
    *("sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap"),
    *("mac_override", "mac_admin", "wake_alarm", "block_suspend", "audit_read"),
    "checkpoint_restore",
]
EACH = {"perfmon": ("perfmon", "")} | {name: (name, "EPERM") for name in NOT_ENOUGH}


@case(doc="Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON, otherwise -EPERM")
@variants(EACH)
def test_persist_needs(ue: UserEvents, capability: str, errno: str) -> None:
    """CAP_PERFMON alone allows a persistent event; no other capability but CAP_SYS_ADMIN does."""
    data = ue.open_data()
    Credentials(ue.process).become_with(Capability[capability.upper()])
    assert data.register(ue.name(), flags=PERSIST).errno == errno


@case(doc="Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON, otherwise -EPERM", tier="full")
@variants(
    ("both", ("PERFMON", "SYS_ADMIN"), "EPERM"),
    ("sys_admin", ("SYS_ADMIN",), ""),
    ("all-others", tuple(each.upper() for each in NOT_ENOUGH), ""),
)
def test_root_needs(ue: UserEvents, dropped: tuple[str, ...], errno: str) -> None:
    """Root without both capabilities gets EPERM, and with CAP_PERFMON alone succeeds."""
    data = ue.open_data()
    Credentials(ue.process).drop(*[Capability[name] for name in dropped])
    assert data.register(ue.name(), flags=PERSIST).errno == errno


@case(doc="Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON, otherwise -EPERM")
def test_effective_counts(ue: UserEvents) -> None:
    """A permitted capability that is not effective does not count: EPERM, until it is raised."""
    data = ue.open_data()
    Credentials(ue.process).make_effective()
    assert data.register(ue.name(), flags=PERSIST).errno == "EPERM"
    Credentials(ue.process).make_effective(Capability.PERFMON)
    assert data.register(ue.name(), flags=PERSIST).errno == ""


@case(needs="persist auto_delete empty_payload", tier="full")
@doc("Registering: with USER_EVENT_REG_PERSIST the last reference does not delete the event")
def test_dropped_afterwards(ue: UserEvents) -> None:
    """A persistent event persists after its creator drops the capability, and can be written."""
    event = ue.event(flags=PERSIST)
    Credentials(ue.process).keep_only()
    event.enable()
    assert event.write().value == 4
    event.disable()
    ue.process.exit()
    assert ue.tracefs.status() == f"{ue.name()}\n"


@case(spec="user_event_free, user_event_capable")
@doc("Deleting: deleting an event that persists requires CAP_PERFMON, otherwise -EPERM")
@variants(
    ("nothing", (), "EPERM"),
    ("perfmon", ("PERFMON",), ""),
    ("bpf", ("BPF",), "EPERM"),
    ("dac_override", ("DAC_OVERRIDE", "FOWNER"), "EPERM"),
    names="capability errno",
)
@variants("ioctl", "command", names="way")
def test_delete_needs(ue: UserEvents, way: str, capability: tuple[str, ...], errno: str) -> None:
    """Deleting a persistent event needs CAP_PERFMON, by ioctl and by command."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    data = ue.open_data()
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    Credentials(ue.process).keep_only(*[Capability[name] for name in capability])
    if way == "ioctl":
        assert data.delete(ue.name()).errno == errno
    else:
        assert file.write(f"-:{ue.name()}".encode()).errno == errno
    assert ue.tracefs.dynamic_events() == (f"u:{ue.name()}\n" if errno else "")


@case(level="behaviour")
@doc("Registering, Deleting: an event that persists requires CAP_PERFMON;")
@doc("silent about CAP_SYS_ADMIN")
@variants("register", "delete", "command")
def test_sys_admin_suffices(ue: UserEvents, way: str) -> None:
    """CAP_SYS_ADMIN alone allows making and deleting persistent events."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    data = ue.open_data()
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    Credentials(ue.process).keep_only(Capability.SYS_ADMIN)
    if way == "register":
        assert data.register(f"{ue.name()}r", flags=PERSIST).errno == ""
    elif way == "delete":
        assert data.delete(ue.name()).errno == ""
    else:
        assert file.write(f"-:{ue.name()}".encode()).errno == ""


@case(level="behaviour", isolation="global")
@doc("Deleting: deleting an event that persists requires CAP_PERFMON; silent about truncation")
@spec("user_event_free; trace_dynevent.c:dyn_events_release_all")
@variants(("nothing", (), "EPERM"), ("perfmon", ("PERFMON",), ""))
def test_truncation_needs(ue: UserEvents, capability: tuple[str, ...], errno: str) -> None:
    """Truncating dynamic_events needs the same capability as deleting events one by one."""
    ue.tracefs.command("u:one\n")
    Credentials(ue.process).keep_only(*[Capability[name] for name in capability])
    assert try_open(ue.process, DYNAMIC_EVENTS, os.O_WRONLY | os.O_TRUNC).errno == errno
    assert ue.tracefs.dynamic_events(whole=True) == ("u:one\n" if errno else "")


@case(level="behaviour", tier="full")
@doc("Overview: dynamic_events requires CAP_PERFMON, otherwise -EPERM;")
@doc("silent about opener and writer")
def test_writer_counts(ue: UserEvents) -> None:
    """The process that writes dynamic_events is checked, not its opener: EPERM in a child."""
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    child = ue.fork(ue.process)
    Credentials(child).keep_only()
    assert file.of(child).write(f"u:{ue.name()}c\n".encode()).errno == "EPERM"
    assert file.write(f"u:{ue.name()}p\n".encode()).errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}p\n"


@case(level="behaviour")
@doc("Overview: dynamic_events requires CAP_PERFMON, otherwise -EPERM;")
@doc("silent about opener and writer")
@variants({"dynamic_events": "command", "data": "ioctl"})
def test_opener_does_not_count(ue: UserEvents, way: str) -> None:
    """A descriptor opened without capabilities works for a process that has them."""
    Credentials(ue.process).make_effective()
    data, file = ue.open_data(), File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    Credentials(ue.process).make_effective(Capability.SYS_ADMIN)
    if way == "ioctl":
        assert data.register(ue.name(), flags=PERSIST).errno == ""
    else:
        assert file.write(f"u:{ue.name()}\n".encode()).errno == ""
    assert ue.tracefs.status() == f"{ue.name()}\n"


@case(level="behaviour", profiles="5.18..", needs="events_made_as_root")
@doc("Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON;")
@doc("silent about root without capabilities")
def test_taking_part_needs_nothing(ue: UserEvents) -> None:
    """Root without any capability registers and writes events that do not persist."""
    Credentials(ue.process).keep_only()
    data = ue.open_data()
    assert data.register(f"{ue.name()} u8 a").index == 0
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, b"\x05").value == 5


@case(level="detail", profiles="5.18..", needs="", isolation="none")
@spec("fs/namei.c:generic_permission")
@variants(
    # For O_RDONLY and O_RDWR.
    ("reader", 1000, ("DAC_READ_SEARCH",), DATA, ("", "EACCES")),
    ("writer", 1000, ("DAC_OVERRIDE",), DATA, ("", "")),
    ("owner-of-all", 1000, ("FOWNER", "CHOWN", "SYS_ADMIN"), DATA, ("EACCES", "EACCES")),
    ("reader-of-dynamic_events", 1000, ("DAC_READ_SEARCH",), DYNAMIC_EVENTS, ("", "EACCES")),
    ("writer-of-dynamic_events", 1000, ("DAC_OVERRIDE",), DYNAMIC_EVENTS, ("", "")),
    ("root-without", 0, (), DATA, ("", "")),
)
def test_override_of_modes(
    ue: UserEvents, uid: int, capabilities: tuple[str, ...], path: str, answers: tuple[str, str]
) -> None:
    """CAP_DAC_OVERRIDE opens every file, CAP_DAC_READ_SEARCH for reading; root owns them."""
    user = Credentials(ue.process)
    if uid:
        user.become_with(*[Capability[name] for name in capabilities])
    else:
        user.keep_only()
    assert try_open(ue.process, path, os.O_RDONLY).errno == answers[0]
    assert try_open(ue.process, path, os.O_RDWR).errno == answers[1]


@case(level="detail", profiles="5.18..", needs="", isolation="none")
@spec("fs/namei.c:generic_permission")
@variants(("without", (), "EACCES"), ("override", ("DAC_OVERRIDE",), ""))
def test_status_is_not_writable(ue: UserEvents, capabilities: tuple[str, ...], errno: str) -> None:
    """Since 6.4 even root needs CAP_DAC_OVERRIDE to open the status file for writing."""
    Credentials(ue.process).keep_only(*[Capability[name] for name in capabilities])
    expected = ue.dated("status_page", since="", before=errno)
    assert try_open(ue.process, STATUS, os.O_RDWR).errno == expected
    assert try_open(ue.process, STATUS, os.O_RDONLY).errno == ""


@case(spec="fs/proc/proc_sysctl.c:test_perm", level="detail", needs="", isolation="global")
def test_sysctl_asks_for_root(ue: UserEvents) -> None:
    """Root may set the event limit without any capability, and no capability replaces root."""
    root, user = Credentials(ue.process), Credentials(ue.new_process())
    user.become_with(*Capability)
    assert user.write(MAXIMUM, "7\n").errno == "EACCES"
    root.keep_only()
    assert root.write(MAXIMUM, "7\n").value == 2
    assert user.read(MAXIMUM).text == "7\n"
    assert root.write(MAXIMUM, "32768\n").value == 6


@case(spec="fs/proc/proc_sysctl.c:proc_sys_setattr", level="detail", needs="", isolation="none")
def test_sysctl_keeps_its_mode(ue: UserEvents) -> None:
    """The mode of the event limit cannot be changed: EPERM."""
    root = Credentials(ue.process)
    assert root.chmod(MAXIMUM, 0o666).errno == "EPERM"
    assert root.chown(MAXIMUM, USER, USER).errno == "EPERM"
    assert root.mode(MAXIMUM) == 0o644
