"""Kernel lockdown: what becomes inaccessible, and what keeps working."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.tracefs_permissions import USER, open_to_users, try_open
from conformance.client.credentials import Credentials
from conformance.client.files import File
from conformance.client.perf import REGS, PerfAttr, open_perf, open_raw
from conformance.client.process import Process
from conformance.client.tracefs import DATA, DYNAMIC_EVENTS, STATUS, TRACE, TRACING_ON
from conformance.ops.credentials import CLONE_NEWNS

DOC = "nothing is said of lockdown"
case = surface("rights", doc=DOC, level="detail", tier="full", isolation="fatal")

SECURITY = "/sys/kernel/security"
LOCKDOWN = f"{SECURITY}/lockdown"
LEVELS = {"confidentiality": ("confidentiality", "EPERM"), "integrity": ("integrity", "")}


def lockdown_administrator(process: Process) -> Credentials:
    """A process that sees securityfs, in a mount namespace of its own."""
    root = Credentials(process)
    root.unshare(CLONE_NEWNS)
    root.mount("securityfs", SECURITY)
    return root


def lock_down(process: Process, level: str) -> None:
    """Lock the kernel down, until the next boot."""
    lockdown_administrator(process).write(LOCKDOWN, f"{level}\n")


@case(spec="trace.c:tracing_check_open_get_tr; trace_dynevent.c:dyn_event_open")
@variants(LEVELS)
def test_lockdown_hides_traces(ue: UserEvents, level: str, errno: str) -> None:
    """Under confidentiality lockdown, files that show traces or create events are EPERM."""
    event = ue.event()
    lock_down(ue.new_process(), level)
    assert try_open(ue.process, DYNAMIC_EVENTS, os.O_RDONLY).errno == errno
    assert try_open(ue.process, DYNAMIC_EVENTS, os.O_WRONLY).errno == errno
    assert try_open(ue.process, TRACING_ON, os.O_WRONLY).errno == errno
    assert event.enable().errno == errno
    # Last, since a reader of the buffer prevents its expansion for the first event.
    assert try_open(ue.process, TRACE, os.O_RDONLY).errno == errno


@case(spec="user_data_fops, user_status_fops", level="behaviour")
def test_lockdown_leaves_programs_alone(ue: UserEvents) -> None:
    """Programs are not affected: they open, register and write, and tracers stay attached."""
    event = ue.event("u8 a", enabled=True)
    lock_down(ue.new_process(), "confidentiality")
    assert event.write(b"\x05").value == 5
    again = ue.open_data()
    assert again.register(f"{ue.name()} u8 a").index == 0
    assert again.register(ue.name("new")).index == 1
    assert ue.tracefs.status(eventually=True).count("\n") == 2
    assert try_open(ue.process, STATUS, os.O_RDONLY).errno == ""


@case(level="behaviour", profiles="6.4..", needs="persist")
@spec("user_event_parse, delete_user_event")
def test_lockdown_lets_events_persist(ue: UserEvents) -> None:
    """Persistent events are created and deleted through the data file, locked down or not."""
    lock_down(ue.new_process(), "confidentiality")
    first, second = ue.open_data(), ue.open_data()
    event = first.register(ue.name(), flags=1)
    assert event.errno == ""
    first.unregister(event.word)
    first.close()
    assert second.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.write(DYNAMIC_EVENTS, f"u:{ue.name()}\n").errno == "EPERM"


@case(spec="security/lockdown/lockdown.c:lock_kernel_down")
def test_lockdown_is_not_lifted(ue: UserEvents) -> None:
    """The lockdown level can be raised and never lowered: EPERM."""
    root = lockdown_administrator(ue.process)
    assert root.write(LOCKDOWN, "somewhat\n").errno == "EINVAL"
    assert root.write(LOCKDOWN, "integrity\n").value == 10
    assert root.write(LOCKDOWN, "integrity\n").errno == "EPERM"
    assert root.write(LOCKDOWN, "confidentiality").value == 15
    assert root.write(LOCKDOWN, "none\n").errno == "EPERM"
    assert try_open(ue.process, TRACE, os.O_RDONLY).errno == "EPERM"


@case(spec="fs/namei.c:do_open; trace_dynevent.c:dyn_event_open")
def test_denied_before_lockdown(ue: UserEvents) -> None:
    """The file mode is checked before lockdown: EACCES without permission, EPERM with it."""
    administrator = open_to_users(ue)
    lock_down(ue.new_process(), "confidentiality")
    Credentials(ue.process).become(USER)
    assert try_open(ue.process, DYNAMIC_EVENTS, os.O_RDONLY).errno == "EACCES"
    administrator.chmod(DYNAMIC_EVENTS, 0o644)
    assert try_open(ue.process, DYNAMIC_EVENTS, os.O_RDONLY).errno == "EPERM"
    assert try_open(ue.process, DATA).errno == ""


@case(facilities="hist snapshot")
@doc("nothing is said of lockdown, nor does trace_events.c know whether formats are to be hidden")
@spec("trace_events.c:trace_format_open, ftrace_event_id_fops, tracing_open_file_tr")
@variants(LEVELS)
def test_lockdown_shows_formats(ue: UserEvents, level: str, errno: str) -> None:
    """format and id stay readable; files that show records do not."""
    event = ue.event("u8 a")
    lock_down(ue.new_process(), level)
    assert "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n" in ue.tracefs.format(ue.name())
    files = ["id", "enable", "filter", "trigger", "hist"]
    paths = [ue.tracefs.event_path(ue.name(), file) for file in files]
    assert [ue.tracefs.read(path).errno for path in paths] == ["", errno, errno, errno, errno]
    assert event.directory.set_filter("nonsense").errno == (errno or "EINVAL")
    assert event.directory.trigger("nonsense").errno == (errno or "EINVAL")
    assert ue.tracefs.write(ue.tracefs.path("set_event"), f"{ue.name()}\n").errno == errno


@case(spec="security/lockdown/lockdown.c:lockdown_is_locked_down (LOCKDOWN_TRACEFS)")
def test_integrity_shows_new_events(ue: UserEvents) -> None:
    """Integrity lockdown leaves tracefs alone: an event created later has its directory."""
    lock_down(ue.new_process(), "integrity")
    assert ue.open_data().register(f"{ue.name()} u8 a").errno == ""
    assert "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n" in ue.tracefs.format(ue.name())


@case(spec="fs/tracefs/event_inode.c:eventfs_create_dir", needs="directories_of_any_name")
def test_lockdown_shows_new_events(ue: UserEvents) -> None:
    """An event created later has its directory, whose files are equally locked."""
    lock_down(ue.new_process(), "confidentiality")
    assert ue.open_data().register(f"{ue.name()} u8 a").errno == ""
    assert "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n" in ue.tracefs.format(ue.name())
    assert ue.tracefs.enable(ue.name()).errno == "EPERM"
    assert ue.tracefs.enable(ue.name("none")).errno == "ENOENT"


# eventfs creates files at lookup since 6.6; 6.6 and 6.7 are not covered.
@case(profiles="5.18..6.5", without="directories_of_any_name")
@spec("fs/tracefs/inode.c:tracefs_create_dir; trace_events.c:event_create_dir")
def test_lockdown_hides_new_events(ue: UserEvents) -> None:
    """An event created later has no directory, and registration still succeeds."""
    data = ue.event("u8 a").data
    lock_down(ue.new_process(), "confidentiality")
    assert data.register(f"{ue.name('new')} u8 a").errno == ""
    paths = [ue.tracefs.event_path(ue.name(stem), "id") for stem in ("e", "new")]
    assert [ue.tracefs.read(path).errno for path in paths] == ["", "ENOENT"]
    assert ue.tracefs.enable(ue.name("new")).errno == "ENOENT"
    assert data.register(f"{ue.name('new')} u8 a").index == 1
    assert ue.tracefs.status(eventually=True).count("\n") == 2


@case(spec="trace.c:tracing_open_file_tr; trace_events.c:event_enable_write")
def test_lockdown_leaves_descriptors(ue: UserEvents) -> None:
    """An open descriptor of `enable` still enables and disables; a new one cannot be opened."""
    event = ue.event()
    file = File(ue.new_process(), ue.tracefs.event_path(ue.name(), "enable"), os.O_RDWR)
    lock_down(ue.new_process(), "confidentiality")
    assert event.enable().errno == "EPERM"
    assert file.write(b"1").value == 1
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert file.write(b"0").value == 1
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="fs/tracefs/inode.c:tracefs_create_dir; trace.c:trace_array_create_dir, instance_rmdir")
def test_lockdown_and_instances(ue: UserEvents) -> None:
    """No instance can be created, and an enabled one is disabled only by removing it."""
    instance, other = ue.instance("i"), ue.instance("j")
    instance.make()
    event = ue.event()
    instance.enable(ue.name())
    lock_down(ue.new_process(), "confidentiality")
    errno = ue.dated("enable_file_holds_instance", since="EINVAL", before="ENOMEM")
    assert (other.make().errno, instance.make().errno) == (errno, "EEXIST")
    assert instance.disable(ue.name()).errno == "EPERM"
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert instance.remove().value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(needs="perf_sink", facilities="perf")
@spec("kernel/events/core.c:perf_event_open: LOCKDOWN_PERF")
@variants(LEVELS)
def test_lockdown_leaves_perf(ue: UserEvents, level: str, errno: str) -> None:
    """perf still samples user events; lockdown refuses only kernel registers."""
    event = ue.event("u8 a")
    lock_down(ue.new_process(), level)
    listener = open_perf(ue.process, ue.name())
    assert listener.errno == ""
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    ring = listener.map()
    assert event.write(b"\5").value == 5
    assert listener.count == 1
    assert len(ring.records()) == 1
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "perf")
    with_registers = PerfAttr(sample_type=REGS, registers=1)
    assert open_perf(ue.process, ue.name(), with_registers).errno == errno
    # Errors of the attributes come first, errors of the event last.
    assert open_perf(ue.process, ue.name(), PerfAttr(sample_type=REGS)).errno == "EINVAL"


@case(spec="kernel/events/core.c:perf_event_open: LOCKDOWN_PERF", facilities="perf")
def test_lockdown_before_the_event(ue: UserEvents) -> None:
    """Sampling kernel registers is refused before the event is looked up."""
    lock_down(ue.new_process(), "confidentiality")
    with_registers = PerfAttr(sample_type=REGS, registers=1)
    assert open_raw(ue.process, 2, 1 << 40, with_registers).errno == "EPERM"
    assert open_raw(ue.process, 2, 1 << 40).errno == "EINVAL"
