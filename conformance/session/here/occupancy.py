"""Find what other programs do with user events and tracing, which a run would disturb."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from conformance.abi import grammar
from conformance.client.tracefs import DYNAMIC_EVENTS, ROOT, STATUS
from conformance.session.here.foreign_events import event_of
from host.text import counted

_INSTANCES = f"{ROOT}/instances"
#: Files that are empty, or hold only comments, unless somebody uses them.
_EMPTY = {
    f"{ROOT}/set_event": "enabled events",
    f"{ROOT}/set_event_pid": "a filter by process id",
    f"{ROOT}/set_event_notrace_pid": "a filter by process id",
}
_ENTRIES = re.compile(r"^# entries-in-buffer/entries-written: (\d+)/", re.MULTILINE)
#: Names in a message.
_SHOWN = 5


def text(path: str | Path) -> str:
    """The text of a file, "" where it is missing or cannot be read."""
    with suppress(OSError):
        return Path(path).read_text(errors="replace")
    return ""


def user_events() -> list[str]:
    """Names of the user events that exist."""
    lines = [each for each in text(DYNAMIC_EVENTS).splitlines() if each.startswith(grammar.PREFIX)]
    lines += text(STATUS).splitlines()
    return list(dict.fromkeys(name for line in lines if (name := event_of(line))))


def other_events() -> list[str]:
    """Definitions of the dynamic events that are not of user_events: probes, synthetic events."""
    lines = _content(text(DYNAMIC_EVENTS))
    return [each for each in lines if not each.startswith(grammar.PREFIX)]


def instances() -> list[str]:
    """Names of the tracefs instances."""
    with suppress(OSError):
        return sorted(each.name for each in Path(_INSTANCES).iterdir())
    return []


def tracing_in_progress() -> list[str]:
    """What other programs trace, in words; a run would lose or change it."""
    found = [f"instance {name}" for name in instances()]
    tracer = text(f"{ROOT}/current_tracer").strip()
    if tracer not in ("", "nop"):
        found.append(f"current_tracer is {tracer}")
    for path, what in _EMPTY.items():
        lines = _content(text(path))
        if lines:
            found.append(f"{what}: {listed(lines)}")
    if defined := other_events():
        found.append(f"dynamic events: {listed(defined)}")
    if records := _records():
        found.append(f"{counted(records, 'record')} in trace")
    found += [f"{what} of {name}" for name, what in attachments()]
    return found


def attachments() -> Iterator[tuple[str, str]]:
    """SYSTEM/EVENT with a trigger or a filter, and which of both."""
    for directory, _, files in os.walk(f"{ROOT}/events"):
        name = directory.removeprefix(f"{ROOT}/events/")
        if "/" not in name:
            continue
        if "trigger" in files and _content(text(f"{directory}/trigger")):
            yield name, "a trigger"
        if "filter" in files and text(f"{directory}/filter").strip() not in ("none", ""):
            yield name, "a filter"


def _records() -> int:
    """Number of records in the buffer of the top instance."""
    # Reading stops tracing on some kernels, so only the head is read.
    with suppress(OSError), Path(f"{ROOT}/trace").open(errors="replace") as file:
        if found := _ENTRIES.search(file.read(4096)):
            return int(found[1])
    return 0


def _content(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line and not line.startswith("#")]


def listed(names: list[str]) -> str:
    """Some names, and the number of the others."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
