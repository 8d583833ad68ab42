"""Lines of dynamic_events with each pair of errors."""

import os

from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.client.files import File
from conformance.client.tracefs import DYNAMIC_EVENTS, MAXIMUM

SPEC = "trace.c:trace_parse_run_command; trace_events_user.c:user_event_create, user_event_parse"
DOC = "Overview: silent about which of two errors is reported"
NEEDS = "persist text_flags_refused arguments_matched null_arguments_matched"
case = surface("dynamic_events", SPEC, DOC, level="detail", profiles="6.4..", needs=NEEDS)

# In the order in which the kernel checks.
CREATING = (
    ("read-only", "EBADF"),
    ("unreadable", "EFAULT"),
    ("too-long", "EINVAL"),
    ("text-flags", "EINVAL"),
    ("permission", "EPERM"),
    ("other-fields", "EADDRINUSE"),
    ("bad-field", "EINVAL"),
    ("maximum", "EMFILE"),
)
DELETION = (
    ("read-only", "EBADF"),
    ("unreadable", "EFAULT"),
    ("too-long", "EINVAL"),
    ("no-name", "EINVAL"),
    ("unknown", "ENOENT"),
    ("busy", "EBUSY"),
    ("permission", "EPERM"),
)
# A line of this length is rejected before the bytes after it are read.
CREATION_APART = (("unreadable", "too-long"),)
DELETION_APART = (
    ("unreadable", "too-long"),
    ("no-name", "unknown"),
    ("no-name", "busy"),
    ("unknown", "busy"),
)
LONGEST = 4096


def run(ue: UserEvents, command: str, errors: tuple[str, ...]) -> str:
    """Errno of a write of one line."""
    file = File(ue.process, DYNAMIC_EVENTS, os.O_RDONLY if "read-only" in errors else os.O_WRONLY)
    if "permission" in errors:
        ue.process.setuid()
    line = command.ljust(LONGEST) if "too-long" in errors else command
    there = ue.process.place(line.encode())
    return file.write_at(there, len(line) + (1 if "unreadable" in errors else 0)).errno


def create(ue: UserEvents, *errors: str) -> str:
    """Errno of a line that should create an event."""
    ue.tracefs.command(f"u:{ue.name('e')} u8 z\n")
    if "maximum" in errors:
        ue.tracefs.write(MAXIMUM, "1\n")
    name = ue.name("e" if "other-fields" in errors else "f")
    flags = ":x" if "text-flags" in errors else ""
    return run(ue, f"u:{name}{flags} {'long' if 'bad-field' in errors else 'u32'} a", errors)


@case
@variants(pairs(CREATING, CREATION_APART, without="maximum"))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks of a line fail, errno is that of the first, and no event is created."""
    assert create(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')} u8 z\n"


@case(tier="full", isolation="global")
@variants(pairs(CREATING, among="maximum"))
def test_pairs_at_the_maximum(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """The limit of events is checked after all other checks have passed."""
    assert create(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')} u8 z\n"


@case(spec="trace_dynevent.c:dyn_event_release; trace_events_user.c:user_event_free")
@variants(pairs(DELETION, DELETION_APART))
def test_pairs_of_deletion(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks of a deletion fail, errno is that of the first."""
    errors = (first, second)
    ue.tracefs.command(f"u:{ue.name()}\n")
    if "busy" in errors:
        ue.tracefs.enable(ue.name())
    name = "" if "no-name" in errors else ue.name("f" if "unknown" in errors else "e")
    assert run(ue, f"-:{name}", errors) == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"


@case(spec="trace_parse_run_command", profiles="5.18..", needs="")
@variants(
    ("in-the-first-piece", 1, "EFAULT"),
    ("line-fills-the-piece", 4096, "EINVAL"),
    ("behind-it", 5000, "EINVAL"),
)
def test_read_in_pieces(ue: UserEvents, length: int, errno: str) -> None:
    """A line longer than the buffer is rejected before the bytes after the buffer are read."""
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    there = ue.process.place(b"#" * length)
    assert file.write_at(there, length + 8).errno == errno


@case(spec="trace_parse_run_command", profiles="5.18..", needs="lasting_events", tier="full")
@variants(("first-piece", 100, ""), ("second-piece", 4090, "u:{}\n"))
def test_piece_by_piece(ue: UserEvents, comment: int, created: str) -> None:
    """The lines of a buffer run before the next is read: EFAULT, and created events stay."""
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    lines = f"u:{ue.name()}\n".encode() + b"#" * (comment - 1) + b"\n"
    there = ue.process.place(lines)
    assert file.write_at(there, len(lines) + 8).errno == "EFAULT"
    assert ue.tracefs.dynamic_events() == created.format(ue.name())
