"""Other mounts of tracefs: bind mounts, read-only ones, chroot, user namespaces."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.registration import PERSIST
from conformance.cases.support.tracefs_permissions import USER, restrict_again, try_open
from conformance.client.credentials import Credentials
from conformance.client.tracefs import DATA, DYNAMIC_EVENTS, ROOT, STATUS, TRACING_ON
from conformance.ops.credentials import CLONE_NEWNS, CLONE_NEWUSER, Capability

DOC = "Overview: the files are in tracefs, mounted at any path; silent about kinds of mounts"
BIND_MOUNTS = "Overview: the files may be mounted at different paths; silent about bind mounts"
case = surface("rights", spec="current_user_event_group", doc=DOC, level="detail", tier="full")

# A mount point for the program's own file system, present in every guest.
RUN = "/run"


def own_mounts(ue: UserEvents) -> Credentials:
    """PID 1 in a mount namespace of its own with an empty directory."""
    root = Credentials(ue.process)
    root.unshare(CLONE_NEWNS)
    root.mount("tmpfs", RUN)
    return root


@case(doc=BIND_MOUNTS, level="behaviour", tier="quick")
def test_data_file_alone(ue: UserEvents) -> None:
    """A program works with only the data file bind-mounted elsewhere."""
    root = own_mounts(ue)
    root.make_file(f"{RUN}/data")
    assert root.bind(DATA, f"{RUN}/data").errno == ""
    root.mount("tmpfs", ROOT)
    assert try_open(ue.process, DATA).errno == "ENOENT"
    assert try_open(ue.process, STATUS, os.O_RDONLY).errno == "ENOENT"
    data = root.data(f"{RUN}/data")
    assert data.register(f"{ue.name()} u8 a").index == 0
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, b"\x05").value == 5
    assert ue.tracefs.records() == [ue.line("a=(5)", dump="05")]


@case(spec="fs/namei.c:may_lookup, generic_permission", doc=BIND_MOUNTS, isolation="global")
@variants(("everybody", 0o666, ""), ("as-it-is", 0o640, "EACCES"))
def test_data_file_for_users(ue: UserEvents, mode: int, errno: str) -> None:
    """A user who sees only the bind-mounted file needs its mode, and no access to tracefs."""
    administrator = Credentials(ue.new_process())
    administrator.chmod(ROOT, 0o700)
    administrator.chmod(DATA, mode)
    user = own_mounts(ue)
    user.make_file(f"{RUN}/data")
    user.bind(DATA, f"{RUN}/data")
    user.become(USER)
    assert try_open(ue.process, DATA).errno == "EACCES"
    assert try_open(ue.process, f"{RUN}/data").errno == errno


@case(level="behaviour")
@doc("Overview: the files may be mounted at different paths; silent about unmounting")
def test_unmounted(ue: UserEvents) -> None:
    """A descriptor works after its tracefs is unmounted."""
    root = own_mounts(ue)
    data = ue.open_data()
    assert root.umount(ROOT).errno == ""
    assert try_open(ue.process, DATA).errno == "ENOENT"
    assert data.register(ue.name()).index == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="fs/namei.c:do_open; fs/namespace.c:mnt_want_write", tier="quick")
@variants(
    ("data", DATA, os.O_RDWR, "EROFS"),
    ("data-to-write", DATA, os.O_WRONLY, "EROFS"),
    ("data-to-read", DATA, os.O_RDONLY, ""),
    ("status", STATUS, os.O_RDONLY, ""),
    ("status-to-write", STATUS, os.O_RDWR, "EROFS"),
    ("dynamic_events", DYNAMIC_EVENTS, os.O_WRONLY, "EROFS"),
    ("dynamic_events-cut-off", DYNAMIC_EVENTS, os.O_RDONLY | os.O_TRUNC, "EROFS"),
    ("dynamic_events-to-read", DYNAMIC_EVENTS, os.O_RDONLY, ""),
)
def test_read_only_mount(ue: UserEvents, path: str, flags: int, errno: str) -> None:
    """On a read-only mount no file opens for writing: EROFS."""
    assert own_mounts(ue).make_read_only(ROOT).errno == ""
    assert try_open(ue.process, path, flags).errno == errno


@case(spec="user_events_ioctl", level="behaviour", tier="quick")
@doc("Registering: an ioctl of user_events_data; silent about open modes")
def test_read_only_registers(ue: UserEvents) -> None:
    """A read-only mount does not prevent registration: the ioctl needs no write access."""
    root = own_mounts(ue)
    root.make_read_only(ROOT)
    data = root.data(DATA, os.O_RDONLY)
    assert data.register(ue.name()).index == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"
    assert data.write_event(0).errno == "EBADF"
    assert root.write(TRACING_ON, "0\n").errno == "EROFS"
    assert root.chmod(DATA, 0o666).errno == "EROFS"


@case(spec="fs/namei.c:do_open; fs/namespace.c:mnt_want_write")
def test_read_only_elsewhere(ue: UserEvents) -> None:
    """With one mount read-only and one not, the mount of the opened path decides."""
    root = own_mounts(ue)
    root.make_file(f"{RUN}/data")
    root.bind(DATA, f"{RUN}/data")
    root.make_read_only(f"{RUN}/data")
    assert try_open(ue.process, f"{RUN}/data").errno == "EROFS"
    assert ue.open_data().register(ue.name()).errno == ""


@case(spec="fs/namei.c:do_open; fs/namespace.c:mnt_want_write", isolation="none")
def test_denied_before_read_only(ue: UserEvents) -> None:
    """A user without write permission gets EACCES on a read-only mount, not EROFS."""
    user = own_mounts(ue)
    user.make_read_only(ROOT)
    user.become(USER)
    assert try_open(ue.process, DATA).errno == "EACCES"


@case(level="contract")
@doc("Overview: the files are in tracefs, which may be mounted at other paths")
@variants({"elsewhere": "/run/tracing", "debugfs": "/sys/kernel/debug/tracing"})
def test_mounted_twice(ue: UserEvents, place: str) -> None:
    """All mounts of tracefs show the same events."""
    root = own_mounts(ue)
    if place.startswith(RUN):
        root.make_directory(place)
        assert root.mount("tracefs", place).errno == ""
    assert root.data(f"{place}/user_events_data").register(ue.name("there")).index == 0
    assert ue.process.open_data().register(ue.name("here")).index == 0
    both = f"u:{ue.name('there')}\nu:{ue.name('here')}\n"
    assert root.read(f"{place}/dynamic_events", ue.prefix).text == both
    assert ue.tracefs.dynamic_events() == both


@case(spec="fs/namei.c:do_open; fs/namespace.c:mnt_want_write", isolation="global")
def test_mounted_twice_mode(ue: UserEvents) -> None:
    """A mode changed in one mount is changed in the other."""
    root = own_mounts(ue)
    root.make_directory("/run/tracing")
    root.mount("tracefs", "/run/tracing")
    root.chmod("/run/tracing/user_events_data", 0o604)
    assert ue.tracefs.mode(DATA) == 0o604
    restrict_again(root)
    assert root.mode("/run/tracing/user_events_data") == 0o640


@case(level="behaviour")
@doc("Overview: the files may be mounted at different paths; silent about chroot()")
def test_other_root(ue: UserEvents) -> None:
    """A program whose root directory is tracefs works as usual."""
    root = Credentials(ue.process)
    assert root.chroot(ROOT).errno == ""
    assert try_open(ue.process, DATA).errno == "ENOENT"
    assert root.data("/user_events_data").register(ue.name()).index == 0
    assert root.read("/user_events_status", ue.prefix).text == ue.status_line(1, ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(
    doc="nothing is said of namespaces",
    level="behaviour",
    needs="events_made_as_root",
    facilities="user_namespaces",
)
@variants({"users": 0, "users-and-mounts": CLONE_NEWNS})
def test_user_namespace(ue: UserEvents, mounts: int) -> None:
    """Events are not per user namespace: one registered there is visible everywhere."""
    assert Credentials(ue.process).unshare(CLONE_NEWUSER | mounts).errno == ""
    data = ue.open_data()
    assert data.register(f"{ue.name()} u8 a").index == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u8 a\n"
    assert Credentials(ue.process).read(STATUS, ue.prefix).text == ue.status_line(1, ue.name())
    again = ue.new_process().open_data().register(f"{ue.name()} u16 b")
    assert again.errno == ue.dated("arguments_matched", since="EADDRINUSE", before="")
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, b"\x05").value == 5


@case(
    level="behaviour",
    profiles="5.18..6.3",
    needs="events_made_as_root",
    facilities="user_namespaces",
)
@spec("user_event_create: current_user_event_group")
@doc("Overview: dynamic_events takes the format of the ioctl; silent about namespaces")
def test_user_namespace_creates(ue: UserEvents) -> None:
    """A process of a user namespace creates and deletes events of all by dynamic_events."""
    apart = Credentials(ue.process)
    apart.unshare(CLONE_NEWUSER)
    assert apart.write(DYNAMIC_EVENTS, f"u:{ue.name()} u8 a\n").errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u8 a\n"
    assert apart.write(DYNAMIC_EVENTS, f"-:{ue.name()}\n").errno == ""
    assert ue.tracefs.dynamic_events() == ""


@case(
    level="contract",
    profiles="6.4..",
    needs="persist",
    tier="quick",
    facilities="user_namespaces",
)
@spec("user_event_capable; include/linux/capability.h:perfmon_capable")
@doc("Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON, otherwise -EPERM")
@variants(
    ("root", ()), ("perfmon", ("PERFMON",)), ("sys_admin", ("SYS_ADMIN",)), ("ordinary", ("NONE",))
)
def test_user_namespace_is_not_capable(ue: UserEvents, before: tuple[str, ...]) -> None:
    """Capabilities of a user namespace do not permit a persistent event: EPERM."""
    ue.tracefs.command(f"u:{ue.name('old')}\n")
    data = ue.open_data()
    user = Credentials(ue.process)
    if before == ("NONE",):
        user.become(USER)
    elif before:
        user.keep_only(*[Capability[name] for name in before])
    assert user.unshare(CLONE_NEWUSER).errno == ""
    assert data.register(ue.name(), flags=PERSIST).errno == "EPERM"
    assert data.delete(ue.name("old")).errno == "EPERM"
    assert data.register(ue.name()).errno == ""


@case(
    level="behaviour",
    profiles="6.4..",
    needs="persist null_arguments_matched",
    tier="quick",
    facilities="user_namespaces",
)
@spec("user_event_capable")
@doc("Overview: dynamic_events requires CAP_PERFMON, otherwise -EPERM; silent about namespaces")
def test_user_namespace_commands(ue: UserEvents) -> None:
    """Root in a user namespace opens dynamic_events if it owns it, and every command is EPERM."""
    ue.tracefs.command(f"u:{ue.name('old')}\n")
    apart = Credentials(ue.process)
    apart.unshare(CLONE_NEWUSER)
    assert apart.write(DYNAMIC_EVENTS, f"u:{ue.name('new')}\n").errno == "EPERM"
    assert apart.write(DYNAMIC_EVENTS, f"-:{ue.name('old')}\n").errno == "EPERM"
    assert apart.write(STATUS, "1\n").errno == "EACCES"


@case(
    spec="fs/super.c:mount_capable",
    doc="nothing is said of namespaces",
    isolation="none",
    facilities="user_namespaces",
)
def test_user_namespace_mounts(ue: UserEvents) -> None:
    """A user namespace cannot mount tracefs, not even in its own mount namespace: EPERM."""
    apart = Credentials(ue.process)
    apart.unshare(CLONE_NEWUSER | CLONE_NEWNS)
    assert apart.mount("tracefs", RUN).errno == "EPERM"
    assert apart.mount("tmpfs", RUN).errno == ""


@case(spec="fs/tracefs/inode.c:tracefs_apply_options", isolation="global")
@doc("ftrace.rst@v6.12: the file system: mounted by any administrator; of options it says nothing")
@variants(
    ("group", "gid=1000,mode=750", 0o750, "", "EACCES"),
    ("group-alone", "gid=1000", 0o700, "EACCES", "EACCES"),
    ("mode-alone", "mode=755", 0o755, "EACCES", "EACCES"),
)
def test_mount_options(ue: UserEvents, options: str, mode: int, reading: str, writing: str) -> None:
    """The group option applies to every file, the mode option to the root directory only."""
    administrator = Credentials(ue.new_process())
    administrator.unshare(CLONE_NEWNS)
    administrator.chmod(ROOT, 0o700)
    assert administrator.remount(ROOT, options).errno == ""
    user = Credentials(ue.process)
    user.become(USER)
    assert user.mode(ROOT) == mode
    assert try_open(ue.process, DATA, os.O_RDONLY).errno == reading
    assert try_open(ue.process, DATA, os.O_RDWR).errno == writing
    administrator.remount(ROOT, "gid=0,mode=700")
    assert administrator.owner(DATA) == "0:0"


@case(switch="tracefs-mount-options", isolation="global")
@spec("fs/tracefs/inode.c:tracefs_get_tree, tracefs_reconfigure")
@doc("ftrace.rst@v6.12: the file system: mounted by any administrator; of options it says nothing")
def test_mount_options_of_another(ue: UserEvents) -> None:
    """Mounting tracefs again with options changes the existing mounts as well."""
    root = own_mounts(ue)
    root.make_directory("/run/tracing")
    assert root.mount("tracefs", "/run/tracing", "gid=1000,mode=711").errno == ""
    other = Credentials(ue.new_process())
    mode, owner = ue.bug("tracefs-mount-options", fixed=(0o711, "0:1000"), present=(0o700, "0:0"))
    assert (other.mode(ROOT), other.owner(ROOT)) == (mode, owner)
    assert other.owner(DATA) == owner
    other.unshare(CLONE_NEWNS)
    other.remount(ROOT, "gid=0,mode=700")
    assert root.mode("/run/tracing") == 0o700
