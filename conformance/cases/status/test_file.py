"""user_events_status as a file: mode, open, read, seek and mmap."""

import mmap
import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.status_text import without_maximum
from conformance.client.addresses import READ_WRITE
from conformance.client.files import File
from conformance.client.tracefs import STATUS

DOC = "Status: administrators read the file; silent about other operations"
MODE = "Status: administrators read the file; silent about its mode"
case = surface("status", doc=DOC, level="detail", isolation="none")


@case(spec="create_user_tracefs", doc=MODE, level="behaviour")
def test_file_mode(ue: UserEvents) -> None:
    """Owner and group can read the file; where it can be mapped the owner can also write it."""
    # "mmap with MAP_SHARED requires writable fd", says create_user_tracefs() before 6.4; it does
    # not: status_page.granted.read-only.
    mode = ue.dated("status_page", since=0o640, before=0o440)
    assert ue.tracefs.mode("/sys/kernel/tracing/user_events_status") == mode


@case(spec="fs/tracefs/inode.c: the root directory has mode 0700", doc=MODE)
def test_ordinary_user(ue: UserEvents) -> None:
    """A user without capabilities cannot open the file: EACCES."""
    ue.process.setuid()
    assert File(ue.process, STATUS).opened.errno == "EACCES"


@case(spec="user_status_fops", level="behaviour", profiles="6.4..")
@doc("Status: the file is read; silent about mapping it")
@variants(
    ("shared", os.O_RDONLY, mmap.PROT_READ, mmap.MAP_SHARED),
    ("private", os.O_RDONLY, mmap.PROT_READ, mmap.MAP_PRIVATE),
    # As programs did that were written for the status page of 5.18 to 6.3.
    ("old_program", os.O_RDWR, mmap.PROT_READ, mmap.MAP_SHARED),
    ("writable", os.O_RDWR, READ_WRITE, mmap.MAP_SHARED),
)
def test_mmap(ue: UserEvents, opened: int, protection: int, flags: int) -> None:
    """The file cannot be mapped: ENODEV."""
    assert File(ue.process, STATUS, opened).map(protection, flags).errno == "ENODEV"


@case(spec="user_status_fops; fs/read_write.c:vfs_write")
@variants(
    ("write_only", os.O_WRONLY, "EINVAL"),
    ("read_write", os.O_RDWR, "EINVAL"),
    ("read_only", os.O_RDONLY, "EBADF"),
)
def test_write(ue: UserEvents, opened: int, errno: str) -> None:
    """Writing fails with EINVAL; on a read-only descriptor with EBADF."""
    assert File(ue.process, STATUS, opened).write(b"1\n").errno == errno


@case(spec="fs/read_write.c:vfs_read")
def test_read_write_only(ue: UserEvents) -> None:
    """Reading a write-only descriptor fails with EBADF."""
    assert File(ue.process, STATUS, os.O_WRONLY).read().errno == "EBADF"


@case(spec="user_status_fops; fs/seq_file.c:seq_lseek")
@variants(
    ("start", 0, os.SEEK_SET, 0, ""),
    ("ahead", 3, os.SEEK_SET, 3, ""),
    ("beyond_the_end", 1 << 20, os.SEEK_SET, 1 << 20, ""),
    ("here", 0, os.SEEK_CUR, 0, ""),
    ("from_here", 2, os.SEEK_CUR, 2, ""),
    ("before_the_start", -1, os.SEEK_SET, -1, "EINVAL"),
    ("end", 0, os.SEEK_END, -1, "EINVAL"),
)
def test_lseek(ue: UserEvents, offset: int, whence: int, value: int, errno: str) -> None:
    """lseek works from the start and from the position, but not from the end."""
    seen = File(ue.process, STATUS).lseek(offset, whence)
    assert (seen.value, seen.errno) == (value, errno)


@case(spec="fs/seq_file.c:seq_read_iter", isolation="global")
def test_read_in_pieces(ue: UserEvents) -> None:
    """Several short reads return the text of one moment, then end of file."""
    data, status = ue.open_data(), File(ue.process, STATUS)
    data.register("first")
    text = ue.status_line(1, "first") + "\nActive: 1\nBusy: 0\n"
    assert status.read(3).text == text[:3]
    data.register("second")
    assert status.read(9).text == text[3:12]
    assert without_maximum(ue, status.read().text) == text[12:]
    seen = status.read()
    assert (seen.value, seen.data or b"") == (0, b"")


@case(spec="fs/seq_file.c:seq_lseek, seq_read_iter", tier="full", isolation="global")
@variants(
    ("start", 0, b"test # Used by ftrace\n", b"1:test # Used by ftrace\n"),
    ("middle", 4, b" # Used by ", b"st # Used by "),
)
def test_read_again(ue: UserEvents, offset: int, text: bytes, older: bytes) -> None:
    """After seeking back, a descriptor that was read to the end shows the current state."""
    ue.open_data().register("test")
    status = File(ue.process, STATUS)
    idle = ue.status_line(1, "test") + "\nActive: 1\nBusy: 0\n"
    assert without_maximum(ue, status.read().text) == idle
    ue.tracefs.enable("test")
    assert status.lseek(offset).value == offset
    shown = ue.dated("remote_enable", since=text, before=older)
    assert status.read(len(shown)).data == shown
