"""How a write to dynamic_events is split into commands: lines, comments, limits."""

import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.files import File
from conformance.client.tracefs import DYNAMIC_EVENTS

SPEC = "trace.c:trace_parse_run_command; trace_probe.c:trace_probe_create"
DOC = "Overview: gives no limit; the log message speaks of less than 4094 characters"
case = surface("dynamic_events", SPEC, DOC, level="detail", needs="lasting_events")


@case(doc="Overview: silent about comments; they are common to all commands of tracefs")
@variants(
    ("comment_line", "# u:{}\n", ""),
    ("blank_line", "\n", ""),
    ("spaces", "  \t\n", ""),
    ("after_fields", "u:{} u32 a# why; u32 b\n", "u:{} u32 a\n"),
    ("after_name", "u:{} # u32 a\n", "u:{}\n"),
    ("part_of_name", "u:{}#x u32 a\n", "u:{}\n"),
    ("between", "u:{}1\n\n# why\nu:{}2\n", "u:{}1\nu:{}2\n"),
)
def test_comments(ue: UserEvents, text: str, shown: str) -> None:
    """Blank lines and text after a `#` are consumed and do nothing."""
    text = text.replace("{}", ue.name())
    assert ue.tracefs.command(text).value == len(text)
    assert ue.tracefs.dynamic_events() == shown.replace("{}", ue.name())


@case(spec="trace_parse_run_command", doc="Overview: silent about several commands in one write")
@variants(
    ("at_once", ("u:{}1 bad", "u:{}2"), "EINVAL", ""),
    ("second", ("u:{}1", "nonsense", "u:{}2"), "EINVAL", "u:{}1\n"),
    ("last", ("u:{}1 u32 a", "u:{}2", "u:{}2 u32 a"), "EADDRINUSE", "u:{}1 u32 a\nu:{}2\n"),
    ("deletion", ("u:{}1", "-:{}1", "-:{}1", "u:{}2"), "ENOENT", ""),
)
def test_first_failure_ends(ue: UserEvents, lines: tuple[str, ...], errno: str, left: str) -> None:
    """The first command that fails ends the write; the commands before it stay in effect."""
    text = "".join(line.replace("{}", ue.name()) + "\n" for line in lines)
    unmatched = errno if errno != "EADDRINUSE" else ""
    found = ue.tracefs.command(text)
    assert found.errno == ue.dated("arguments_matched", since=errno, before=unmatched)
    assert ue.tracefs.dynamic_events() == left.replace("{}", ue.name())


@case(spec="trace_parse_run_command (WRITE_BUFSIZE)")
@variants(
    ("longest_with_newline", 4094, "\n", ""),
    ("too_long_with_newline", 4095, "\n", "EINVAL"),
    ("longest_without_newline", 4095, "", ""),
    ("too_long_without_newline", 4096, "", "EINVAL"),
)
def test_line_length(ue: UserEvents, length: int, end: str, errno: str) -> None:
    """A line may have 4094 characters and a newline, or 4095 without one."""
    # Spaces after the prefix are skipped: the name stays short.
    line = "u:" + ue.name().rjust(length - 2)
    assert ue.tracefs.command(line + end).errno == errno
    assert ue.tracefs.dynamic_events() == ("" if errno else "u:" + ue.name() + "\n")


@case(spec="trace_parse_run_command (WRITE_BUFSIZE)")
@variants(("longest", 4094, "", "u:{}1\nu:{}2\nu:{}3\n"), ("too_long", 4095, "EINVAL", "u:{}1\n"))
def test_line_length_behind_others(ue: UserEvents, length: int, errno: str, shown: str) -> None:
    """The limit applies to each line: other lines of the same write do not count."""
    long = "u:" + (ue.name() + "2").rjust(length - 2)
    seen = ue.tracefs.command("u:" + ue.name() + "1\n" + long + "\nu:" + ue.name() + "3\n")
    assert seen.errno == errno
    assert ue.tracefs.dynamic_events() == shown.replace("{}", ue.name())


@case(spec="trace_parse_run_command (strlen)", doc="Overview: silent about bytes that are not text")
@variants(
    ("at_the_end", "u:{}1\0", ""),
    ("before_newline", "u:{}1\0\n", ""),
    ("in_a_comment", "u:{}1 # \0\n", ""),
    ("behind_newline", "u:{}1\n\0", "u:{}1\n"),
    ("in_second_line", "u:{}1\nu:{}2\0\nu:{}3\n", "u:{}1\n"),
)
def test_nul(ue: UserEvents, text: str, shown: str) -> None:
    """A line that contains a NUL is EINVAL, even if the NUL ends a C string."""
    assert ue.tracefs.command(text.replace("{}", ue.name())).errno == "EINVAL"
    assert ue.tracefs.dynamic_events() == shown.replace("{}", ue.name())


@case(spec="trace_parse_run_command")
@doc("Overview: gives no limit to the number of commands in one write")
def test_long_write(ue: UserEvents) -> None:
    """A write may exceed the line limit as long as each of its lines is short."""
    lines = ["u:" + (ue.name() + stem).rjust(2000) + "\n" for stem in "abcde"]
    assert ue.tracefs.command("".join(lines)).value == 10015
    assert ue.tracefs.dynamic_events().replace(ue.name(), "") == "u:a\nu:b\nu:c\nu:d\nu:e\n"


@case(spec="trace_parse_run_command; trace_events_user.c:user_event_parse", tier="full")
@doc("Command Format: gives no limit")
def test_long_definition(ue: UserEvents) -> None:
    """A command may be longer than the 511 characters that an ioctl takes."""
    fields = "; ".join(f"u32 field_{number:03}" for number in range(100))
    line = "u:" + ue.name() + " " + fields + "\n"
    assert ue.tracefs.command(line).errno == ""
    assert ue.tracefs.dynamic_events() == line
    assert ue.open_data().register(ue.name() + " " + fields).errno == "EINVAL"


@case(needs="", tier="full", isolation="none")
@doc("Overview: without CAP_PERFMON it is EPERM; silent about comments")
def test_comment_without_permission(ue: UserEvents) -> None:
    """A comment needs no permission beyond the open file."""
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    ue.process.setuid()
    assert file.write(b"# nothing\n").value == 10
