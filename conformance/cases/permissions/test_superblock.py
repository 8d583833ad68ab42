"""tracefs with a read-only superblock, not just a read-only mount."""

import os

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.cases.support.tracefs_permissions import USER, open_to_users, try_open
from conformance.client.credentials import Credentials
from conformance.client.files import File
from conformance.client.perf import open_perf
from conformance.client.tracefs import DATA, DYNAMIC_EVENTS, ROOT, STATUS, TRACING_ON
from conformance.ops.credentials import CLONE_NEWNS, CLONE_NEWUSER, Capability

DOC = "Overview: the files are in tracefs; of a tracefs that is read-only it says nothing"
case = surface("rights", doc=DOC, level="detail", tier="full", isolation="global")


def administrator(ue: UserEvents) -> Credentials:
    """A process that can remount tracefs, with mounts of its own."""
    root = Credentials(ue.new_process())
    root.unshare(CLONE_NEWNS)
    return root


def read_only(ue: UserEvents) -> Credentials:
    """Such a process after it has made tracefs read-only."""
    root = administrator(ue)
    assert root.remount(ROOT, read_only=True).value == 0
    return root


@case(spec="fs/namespace.c:may_mount, do_remount", isolation="none", facilities="user_namespaces")
def test_superblock_needs_sys_admin(ue: UserEvents) -> None:
    """Making tracefs read-only needs CAP_SYS_ADMIN in the initial user namespace: EPERM."""
    apart = Credentials(ue.process)
    apart.unshare(CLONE_NEWUSER | CLONE_NEWNS)
    assert apart.remount(ROOT, read_only=True).errno == "EPERM"
    root = administrator(ue)
    root.drop(Capability.SYS_ADMIN)
    assert root.remount(ROOT, read_only=True).errno == "EPERM"
    assert ue.tracefs.write(TRACING_ON, "1\n").value == 2


@case(spec="fs/super.c:reconfigure_super; fs/namespace.c:sb_prepare_remount_readonly")
@variants(
    ("data", DATA, os.O_RDWR),
    ("data-to-write", DATA, os.O_WRONLY),
    ("dynamic_events", DYNAMIC_EVENTS, os.O_WRONLY),
    ("tracing_on", TRACING_ON, os.O_RDWR),
)
def test_superblock_busy(ue: UserEvents, path: str, flags: int) -> None:
    """While a program has a file open for writing, tracefs cannot become read-only: EBUSY."""
    root = administrator(ue)
    opened, slot = ue.process.open(path, flags)
    assert opened.errno == ""
    assert root.remount(ROOT, read_only=True).errno == "EBUSY"
    ue.process.close(slot)
    assert root.remount(ROOT, read_only=True).value == 0
    assert try_open(ue.process, path, flags).errno == "EROFS"
    assert root.remount(ROOT).value == 0
    assert try_open(ue.process, path, flags).errno == ""


@case(spec="fs/super.c:reconfigure_super; fs/namespace.c:sb_prepare_remount_readonly")
def test_superblock_of_a_listener(ue: UserEvents) -> None:
    """A tool that has `enable` of an event open for writing keeps tracefs writable: EBUSY."""
    ue.open_data(os.O_RDONLY).register(ue.name())
    root = administrator(ue)
    path = ue.tracefs.event_path(ue.name(), "enable")
    tool = ue.new_process()
    file = File(tool, path, os.O_RDWR)
    assert root.remount(ROOT, read_only=True).errno == "EBUSY"
    assert file.write(b"1").value == 1
    tool.exit()
    assert root.remount(ROOT, read_only=True).value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")


@case(spec="fs/namespace.c:sb_prepare_remount_readonly", switch="tracefs-inode-leak")
def test_superblock_after_an_instance(ue: UserEvents) -> None:
    """An instance that is gone does not keep tracefs writable."""
    instance = ue.instance("i")
    instance.make()
    assert instance.remove().value == 0
    errno = ue.bug("tracefs-inode-leak", fixed="", present="EBUSY")
    assert administrator(ue).remount(ROOT, read_only=True).errno == errno


@case(spec="user_events_ioctl", level="behaviour")
def test_superblock_registers(ue: UserEvents) -> None:
    """A read-only descriptor of the data file still registers events, which cannot be written."""
    data = ue.open_data(os.O_RDONLY)
    root = read_only(ue)
    assert data.register(f"{ue.name()} u8 a").index == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u8 a\n"
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    assert ue.tracefs.enable(ue.name()).errno == "EROFS"
    assert data.write_event(0, b"\5").errno == "EBADF"
    assert root.remount(ROOT).value == 0
    ue.tracefs.enable(ue.name())
    writer = ue.open_data()
    assert writer.register(f"{ue.name()} u8 a").index == 0
    assert writer.write_event(0, b"\5").value == 5


@case(level="behaviour", needs="lasting_events auto_delete")
@spec("user_events_ioctl_del; fs/tracefs/inode.c:tracefs_remove")
def test_superblock_deletes(ue: UserEvents) -> None:
    """Events and their directories are still deleted, by request and automatically."""
    ue.tracefs.command(f"u:{ue.name('old')}\n")
    data, other = ue.open_data(os.O_RDONLY), ue.new_process()
    other.open_data(os.O_RDONLY).register(ue.name())
    read_only(ue)
    assert data.delete(ue.name("old")).value == 0
    assert ue.tracefs.command(f"u:{ue.name('new')}\n").errno == "EROFS"
    other.exit()
    assert ue.tracefs.status(eventually=True) == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(spec="user_event_perf", level="behaviour", needs="perf_sink", facilities="perf")
def test_superblock_and_perf(ue: UserEvents) -> None:
    """perf needs only an id from tracefs: it attaches, and enable words are set."""
    event = ue.open_data(os.O_RDONLY).register(ue.name())
    read_only(ue)
    listener = open_perf(ue.process, ue.name())
    assert listener.errno == ""
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "perf")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    listener.close()
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="fs/namei.c:sb_permission, do_open")
def test_superblock_opened_after(ue: UserEvents) -> None:
    """No file opens for writing on any mount any more, and all open for reading."""
    program = Credentials(ue.process)
    program.unshare(CLONE_NEWNS)
    program.mount("tmpfs", "/run")
    program.make_file("/run/data")
    program.bind(DATA, "/run/data")
    root = read_only(ue)
    flags = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC)
    expected = ["", "EROFS", "EROFS", "EROFS"]
    for path in (DATA, "/run/data", DYNAMIC_EVENTS):
        assert [try_open(ue.process, path, each).errno for each in flags] == expected
    assert try_open(ue.process, STATUS, os.O_RDONLY).errno == ""
    assert root.chmod(DATA, 0o666).errno == "EROFS"
    assert root.remount(ROOT).errno == ""
    assert try_open(ue.process, "/run/data", os.O_RDWR).errno == ""


@case(spec="fs/namei.c:sb_permission, do_open")
def test_superblock_before_the_mode(ue: UserEvents) -> None:
    """A user without write permission gets EROFS, not EACCES as on a read-only mount."""
    open_to_users(ue, data=0o640)
    root = administrator(ue)
    user = Credentials(ue.process)
    user.unshare(CLONE_NEWNS)
    user.become(USER)
    assert try_open(ue.process, DATA).errno == "EACCES"
    assert root.remount(ROOT, read_only=True).value == 0
    # Until 6.0, remounting also closes the directory to the user.
    errno = ue.dated("remount_keeps_mode", since="EROFS", before="EACCES")
    assert try_open(ue.process, DATA).errno == errno
    assert try_open(ue.process, DATA, os.O_RDONLY).errno == "EACCES"
    assert root.remount(ROOT).value == 0


@case(spec="fs/namei.c:filename_create, do_rmdir")
def test_superblock_and_instances(ue: UserEvents) -> None:
    """Instances are neither created nor removed; creating an existing one is EEXIST."""
    instance, other = ue.instance("i"), ue.instance("j")
    instance.make()
    root = read_only(ue)
    assert (other.make().errno, instance.make().errno) == ("EROFS", "EEXIST")
    assert (instance.remove().errno, other.remove().errno) == ("EROFS", "EROFS")
    root.remount(ROOT)
    assert instance.remove().value == 0
