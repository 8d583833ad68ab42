"""user_events_status: who listens to which event, the order of the lines, the totals."""

from __future__ import annotations

import mmap
import os

from conformance.cases.declare import case, variants
from conformance.cases.status_text import whole_status, without_room
from conformance.sut.files import File
from conformance.sut.places import READ_WRITE
from conformance.sut.tracefs import STATUS
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/user_events.rst@v6.12: Status"
SHOW = "trace_events_user.c:user_seq_show"


@case(
    "status.nothing_registered",
    spec=SHOW,
    doc=f"{DOC}: the names come first, then a blank line and the two counts",
    isolation="global",
    profiles="5.18..",
)
def test_nothing_registered(ue: UserEvents) -> None:
    """Without any event the text is a blank line and totals of zero."""
    assert whole_status(ue) == "\nActive: 0\nBusy: 0\n"


@case(
    "status.documented_example",
    spec=SHOW,
    doc=f"{DOC}: `test` alone shows its name and Active: 1, Busy: 0; once ftrace uses it the "
    "line ends in `# Used by ftrace` and Busy is 1",
    isolation="global",
    tier="full",
    profiles="5.18..",
)
def test_documented_example(ue: UserEvents) -> None:
    """The text is the one of the documentation, idle, in use and idle again."""
    ue.open_data().register("test u32 count")
    idle, busy = ue.status_line(1, "test"), ue.status_line(1, "test", "ftrace")
    assert whole_status(ue) == idle + "\nActive: 1\nBusy: 0\n"
    ue.tracefs.enable("test")
    assert whole_status(ue) == busy + "\nActive: 1\nBusy: 1\n"
    ue.tracefs.disable("test")
    assert whole_status(ue) == idle + "\nActive: 1\nBusy: 0\n"


@case(
    "status.totals",
    spec=SHOW,
    doc=f"{DOC}: Active counts the events, Busy those somebody uses",
    isolation="global",
    profiles="5.18..",
)
@variants(
    "registered, enabled, totals",
    {
        "one_idle": (("b",), (), "Active: 1\nBusy: 0"),
        "two_idle": (("b", "c"), (), "Active: 2\nBusy: 0"),
        "one_of_three": (("b", "c", "d"), ("c",), "Active: 3\nBusy: 1"),
        "all_of_three": (("b", "c", "d"), ("b", "c", "d"), "Active: 3\nBusy: 3"),
        "tens": ("abcdefghijkl", "ab", "Active: 12\nBusy: 2"),
    },
)
def test_totals(
    ue: UserEvents, registered: tuple[str, ...], enabled: tuple[str, ...], totals: str
) -> None:
    """Active is the number of events and Busy the number of those with a tracer."""
    data = ue.open_data()
    for name in registered:
        data.register(name)
    for name in enabled:
        ue.tracefs.enable(name)
    lines, blank, shown = whole_status(ue).partition("\n\n")
    assert len(lines.splitlines()) == len(registered)
    assert (blank, shown) == ("\n\n", totals + "\n")
    for name in enabled:
        ue.tracefs.disable(name)


@case(
    "status.counted_once",
    spec="trace_events_user.c:find_user_event",
    doc=f"{DOC}: the counts are of events, not of the programs that registered them",
    isolation="global",
    tier="full",
    profiles="5.18..",
)
def test_counted_once(ue: UserEvents) -> None:
    """An event that two processes registered on three descriptors is one line and one."""
    first, second = ue.open_data(), ue.open_data()
    first.register("shared u32 a")
    second.register("shared u32 a")
    ue.new_process().open_data().register("shared u32 a")
    assert whole_status(ue) == ue.status_line(1, "shared") + "\nActive: 1\nBusy: 0\n"


@case(
    "status.persistent_counted",
    spec=SHOW,
    doc=f"{DOC}: all registered events are shown",
    needs=("lasting_events",),
    isolation="global",
    tier="full",
    profiles="5.18..",
)
def test_persistent_counted(ue: UserEvents) -> None:
    """An event nobody has registered any more is listed and counted while it exists."""
    ue.tracefs.command("u:kept u32 a\n")
    assert whole_status(ue) == ue.status_line(1, "kept") + "\nActive: 1\nBusy: 0\n"
    ue.tracefs.enable("kept")
    assert whole_status(ue) == ue.status_line(1, "kept", "ftrace") + "\nActive: 1\nBusy: 1\n"
    ue.tracefs.disable("kept")
    ue.tracefs.command("-:kept u32 a\n")
    assert whole_status(ue) == "\nActive: 0\nBusy: 0\n"


@case(
    "status.hash_order",
    spec=f"{SHOW} (hash_for_each), user_event_key; include/linux/jhash.h:jhash",
    doc=f"{DOC}: says nothing about the order of the lines",
    isolation="global",
    tier="full",
    profiles="5.18..",
)
@variants(
    "names, shown, of_16_buckets",
    {
        "short": (
            ("test", "test2", "a", "__test_event"),
            "__test_event\na\ntest2\ntest\n",
            "",
        ),
        "short_reversed": (
            ("__test_event", "a", "test2", "test"),
            "__test_event\na\ntest2\ntest\n",
            "",
        ),
        # Around the 12 bytes that jhash() takes at a time.
        "lengths": (
            (
                "ab",
                "abcd",
                "abcdefghijkl",
                "abcdefghijklm",
                "abcdefghijklmnopqrstuvwx",
                "abcdefghijklmnopqrstuvwxy",
                "abcdefghijklmnopqrstuvwxyz0123456789",
            ),
            "abcdefghijklmnopqrstuvwx\n"
            "abcdefghijklmnopqrstuvwxy\n"
            "abcdefghijklmnopqrstuvwxyz0123456789\n"
            "ab\n"
            "abcd\n"
            "abcdefghijkl\n"
            "abcdefghijklm\n",
            "abcdefghijklmnopqrstuvwxy\n"
            "abcdefghijklmnopqrstuvwx\n"
            "abcdefghijklmnopqrstuvwxyz0123456789\n"
            "abcd\n"
            "ab\n"
            "abcdefghijkl\n"
            "abcdefghijklm\n",
        ),
        "same_bucket": (
            ("test", "testnl", "testqw", "testyv"),
            "testyv\ntestqw\ntestnl\ntest\n",
            "",
        ),
        "same_bucket_other_lengths": (
            ("abcdefghijklm", "abcdefghijk"),
            "abcdefghijk\nabcdefghijklm\n",
            "",
        ),
        "not_ascii": (("abc", "é", "ab"), "é\nab\nabc\n", ""),
    },
)
def test_hash_order(ue: UserEvents, names: tuple[str, ...], shown: str, of_16_buckets: str) -> None:
    """Lines come by the bucket of the name's hash, and newest first within a bucket."""
    data = ue.open_data()
    for name in names:
        data.register(name)
    # Where 16 buckets in the place of 256 make no difference, the table says nothing.
    fewer = of_16_buckets or shown
    order = {"byte-status": fewer, "bit-status": shown, "remote-enable": shown}
    found = order[ue.profile.generation].splitlines()
    lines = [ue.status_line(names.index(name) + 1, name) for name in found]
    assert whole_status(ue).partition("\nActive")[0] == "".join(lines)


@case(
    "status.used_by_ftrace",
    spec=f"{SHOW}, update_enable_bit_for",
    doc=f"{DOC}: `# Used by ftrace` follows the name while ftrace records the event",
    tier="full",
    profiles="5.18..",
)
def test_used_by_ftrace(ue: UserEvents) -> None:
    """Only the line of the event that ftrace listens to says so."""
    data = ue.open_data()
    data.register(ue.name("idle"))
    data.register(ue.name("busy"))
    ue.tracefs.enable(ue.name("busy"))
    idle, busy = ue.status_line(1, ue.name("idle")), ue.status_line(2, ue.name("busy"), "ftrace")
    assert sorted(ue.tracefs.status().splitlines(keepends=True)) == sorted([idle, busy])
    ue.tracefs.disable(ue.name("busy"))
    unused = ue.status_line(2, ue.name("busy"))
    assert sorted(ue.tracefs.status().splitlines(keepends=True)) == sorted([idle, unused])


@case(
    "status.enabled_twice",
    spec="trace_events.c:__ftrace_event_enable_disable; trace_events_user.c:user_event_reg",
    doc=f"{DOC}: a tool that attaches shows, one that detaches is gone",
    tier="full",
    profiles="5.18..",
)
def test_enabled_twice(ue: UserEvents) -> None:
    """Enabling an enabled event adds nothing: one disabling ends the use."""
    ue.open_data().register(ue.name())
    ue.tracefs.enable(ue.name())
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(
    "status.shows_the_name_alone",
    spec=SHOW,
    doc=f"{DOC}: a line is the name of the event and a comment",
    profiles="5.18..",
)
@variants(
    "rest, shown",
    {
        "fields": (" u32 a; char[20] b", ""),
        "struct": (" struct s a 20", ""),
        "semicolon_in_name": (";x u32 a", ";x"),
        "hash_in_name": ("#x", "#x"),
        "percent_in_name": ("%d%s", "%d%s"),
        "tab_in_name": ("\tx", "\tx"),
        "not_ascii": ("\u00fc\u2211", "\u00fc\u2211"),
    },
)
def test_shows_the_name_alone(ue: UserEvents, rest: str, shown: str) -> None:
    """A line holds the bytes of the name, whatever they are, and no fields."""
    assert ue.open_data().register(ue.name() + rest).value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name() + shown)


@case(
    "status.file_mode",
    spec="trace_events_user.c:create_user_tracefs",
    doc=f"{DOC}: administrators read the file",
    isolation="none",
    profiles="5.18..",
)
def test_file_mode(ue: UserEvents) -> None:
    """The file can be read by owner and group, and written by the owner where it is mapped."""
    # A shared mapping wanted a descriptor for writing.
    mode = ue.dated("status_page", since=0o640, before=0o440)
    assert ue.tracefs.mode("/sys/kernel/tracing/user_events_status") == mode


@case(
    "status.mmap",
    spec="trace_events_user.c:user_status_fops",
    doc=f"{DOC}: events are followed through enable_addr; there is no page to map",
    isolation="none",
)
@variants(
    "opened, protection, flags",
    {
        "shared": (os.O_RDONLY, mmap.PROT_READ, mmap.MAP_SHARED),
        "private": (os.O_RDONLY, mmap.PROT_READ, mmap.MAP_PRIVATE),
        # As programs written for the status page of 5.18 to 6.3 do.
        "old_program": (os.O_RDWR, mmap.PROT_READ, mmap.MAP_SHARED),
        "writable": (os.O_RDWR, READ_WRITE, mmap.MAP_SHARED),
    },
)
def test_mmap(ue: UserEvents, opened: int, protection: int, flags: int) -> None:
    """The file cannot be mapped: ENODEV."""
    assert File(ue.process, STATUS, opened).map(protection, flags).errno == "ENODEV"


@case(
    "status.write",
    spec="trace_events_user.c:user_status_fops; fs/read_write.c:vfs_write",
    doc=f"{DOC}: the file is there to be read",
    isolation="none",
    profiles="5.18..",
)
@variants(
    "opened, errno",
    {
        "write_only": (os.O_WRONLY, "EINVAL"),
        "read_write": (os.O_RDWR, "EINVAL"),
        "read_only": (os.O_RDONLY, "EBADF"),
    },
)
def test_write(ue: UserEvents, opened: int, errno: str) -> None:
    """Writing fails with EINVAL, and with EBADF where the descriptor is for reading."""
    assert File(ue.process, STATUS, opened).write(b"1\n").errno == errno


@case(
    "status.read_write_only",
    spec="fs/read_write.c:vfs_read",
    doc=f"{DOC}: the file is there to be read",
    isolation="none",
    profiles="5.18..",
)
def test_read_write_only(ue: UserEvents) -> None:
    """A descriptor for writing cannot be read: EBADF."""
    assert File(ue.process, STATUS, os.O_WRONLY).read().errno == "EBADF"


@case(
    "status.lseek",
    spec="trace_events_user.c:user_status_fops; fs/seq_file.c:seq_lseek",
    doc=f"{DOC}: the file is text",
    isolation="none",
    profiles="5.18..",
)
@variants(
    "offset, whence, value, errno",
    {
        "start": (0, os.SEEK_SET, 0, ""),
        "ahead": (3, os.SEEK_SET, 3, ""),
        "beyond_the_end": (1 << 20, os.SEEK_SET, 1 << 20, ""),
        "here": (0, os.SEEK_CUR, 0, ""),
        "from_here": (2, os.SEEK_CUR, 2, ""),
        "before_the_start": (-1, os.SEEK_SET, -1, "EINVAL"),
        "end": (0, os.SEEK_END, -1, "EINVAL"),
    },
)
def test_lseek(ue: UserEvents, offset: int, whence: int, value: int, errno: str) -> None:
    """Seeking works from the start and from the position, but not from the end."""
    seen = File(ue.process, STATUS).lseek(offset, whence)
    assert (seen.value, seen.errno) == (value, errno)


@case(
    "status.read_in_pieces",
    spec="fs/seq_file.c:seq_read_iter",
    doc=f"{DOC}: the file is text",
    isolation="global",
    profiles="5.18..",
)
def test_read_in_pieces(ue: UserEvents) -> None:
    """Several short reads give the text of one moment, and then the end of the file."""
    data, status = ue.open_data(), File(ue.process, STATUS)
    data.register("first")
    text = ue.status_line(1, "first") + "\nActive: 1\nBusy: 0\n"
    assert status.read(3).text == text[:3]
    data.register("second")
    assert status.read(9).text == text[3:12]
    assert without_room(ue, status.read().text) == text[12:]
    seen = status.read()
    assert (seen.value, seen.data or b"") == (0, b"")


@case(
    "status.read_again",
    spec="fs/seq_file.c:seq_lseek, seq_read_iter",
    doc=f"{DOC}: the status is updated in real time",
    isolation="global",
    tier="full",
    profiles="5.18..",
)
@variants(
    "offset, text, older",
    {
        "start": (0, b"test # Used by ftrace\n", b"1:test # Used by ftrace\n"),
        "middle": (4, b" # Used by ", b"st # Used by "),
    },
)
def test_read_again(ue: UserEvents, offset: int, text: bytes, older: bytes) -> None:
    """After going back, a descriptor that was read to its end shows the present state."""
    ue.open_data().register("test")
    status = File(ue.process, STATUS)
    idle = ue.status_line(1, "test") + "\nActive: 1\nBusy: 0\n"
    assert without_room(ue, status.read().text) == idle
    ue.tracefs.enable("test")
    assert status.lseek(offset).value == offset
    shown = ue.dated("remote_enable", since=text, before=older)
    assert status.read(len(shown)).data == shown
    ue.tracefs.disable("test")


@case(
    "status.ordinary_user",
    spec="fs/tracefs/inode.c: the root directory has mode 0700",
    doc=f"{DOC}: administrators read the file",
    isolation="none",
    profiles="5.18..",
)
def test_ordinary_user(ue: UserEvents) -> None:
    """A user without capabilities cannot open the file: EACCES."""
    ue.process.setuid()
    assert File(ue.process, STATUS).opened.errno == "EACCES"
