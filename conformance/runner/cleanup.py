"""Putting a guest back in order between programs, and knowing what it held before one.

A program of generic calls that runs beside the cases and is never compared with the
model.  It deletes what a program left behind as far as that can be done at once; events
that still wait for the kernel to drop a reference are found again the next time.
"""

from __future__ import annotations

import os
import re
from errno import ENOENT
from typing import Any

from conformance.abi import grammar, rfc_v1, uapi
from conformance.client import tracefs
from conformance.model.state.events import DEFAULT_MAX_EVENTS
from conformance.ops.encode.requests import Call, Request, fd, path_in, sys_call
from conformance.runner.guest_executor import Channel

# The process that reads and writes the files of tracefs, for programs too.
ACTOR = "root"
_LIMIT = 1 << 20
_EVENTS = f"{tracefs.ROOT}/events"
_INSTANCES = f"{tracefs.ROOT}/instances"
# Lists of processes that ftrace is limited to.
_FILTERS = (f"{tracefs.ROOT}/set_event_pid", f"{tracefs.ROOT}/set_event_notrace_pid")
_GAUGE = "uevt_gauge"
_MEMORY = 0x2000_0000_0000
_PAGE = 4096
_SLOT = 3
_AT_FDCWD = -100
# PROT_READ | PROT_WRITE; MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE.
_READ_WRITE, _FIXED = 3, 0x100022
_SIGKILL = 9
# What `snapshot` begins with while there is no spare buffer (trace.c:print_snapshot_help).
_SPARE_FREED = "* Snapshot is freed *"
# What ordinary users may do with perf and bpf(2) is the kernel's configuration, or the user's
# command line; cases count on 2.  A kernel without them has neither file.
_SETTINGS = (
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
)


class Janitor:
    """Keeps one guest in order.  Raises what the channel raises."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        for actor, calls in _BEGINNING:
            channel.call(actor, calls)

    def kill(self, actors: list[str]) -> None:
        """End the processes of a program."""
        if actors:
            self._channel.call("", [["kill", actor, _SIGKILL] for actor in actors])

    def tidy(self) -> bool:
        """Undo what programs left behind; whether the system was as new already."""
        repairs = self.repairs()
        if repairs:
            self._channel.call(ACTOR, repairs)
        return not repairs

    def repairs(self, *, triggers: bool = True) -> list[Call]:
        """What undoes what programs left behind, for ``ACTOR``; nothing of a system that is as new.

        Where nobody has left ``triggers`` it is not looked for them.
        """
        status, definitions, tracing_on, maximum, probed, snapshot, *more = self._look()
        instances, *filters = more
        repairs: list[Call] = [
            sys_call("rmdir", path_in(f"{_INSTANCES}/{name}")) for name in instances.split()
        ]
        # Opened for truncation they are empty.
        repairs += [
            _spill(path, "\n", os.O_TRUNC)
            for path, text in zip(_FILTERS, filters, strict=True)
            if text
        ]
        if snapshot and _SPARE_FREED not in snapshot:
            repairs.append(_spill(tracefs.SNAPSHOT, "0"))
        # A probe is a trigger on its event, and triggers keep events in use.
        repairs += [_spill(f"{_EVENTS}/{name}/enable", "0") for name in _others_in(definitions)]
        if triggers:
            repairs += self._without_triggers(_used_in(status))
        if probed.strip():
            repairs.append(_spill(tracefs.PROBE_DETACH, "\n"))
        if tracing_on != "1\n":
            repairs.append(_spill(tracefs.TRACING_ON, "1"))
        # Kernels before 6.4 have no such limit.
        if maximum not in ("", f"{DEFAULT_MAX_EVENTS}\n"):
            repairs.append(_spill(tracefs.MAXIMUM, str(DEFAULT_MAX_EVENTS)))
        # The first version tells who listens in the definitions.
        if " # Used by" in status or " (Used by" in definitions:
            repairs += [
                _spill(f"{_EVENTS}/{system}/enable", "0")
                for system in (tracefs.SYSTEM, tracefs.MULTI_SYSTEM)
            ]
        # Probes go before what they are on.
        for line in sorted(definitions.splitlines()):
            if line.startswith(("p:", "e:", "s:")):
                # A kprobe, `p:GROUP/NAME FUNCTION`, an eprobe, `e:GROUP/NAME SYSTEM.EVENT`, or a
                # synthetic event, `s:GROUP/NAME<TAB>FIELDS`.
                name = line.partition(":")[2].split()[0]
                repairs.append(_spill(tracefs.DYNAMIC_EVENTS, f"-:{name}", os.O_APPEND))
                continue
            # By name: some definitions do not match their own text, as `-:` would need.
            name = _name_in(line)
            repairs.append(["poke", _MEMORY, (name.encode("latin-1") + b"\0").hex()])
            repairs.append(sys_call("ioctl", fd(_SLOT), uapi.DIAG_IOCSDEL, _MEMORY))
        return repairs

    def _without_triggers(self, names: list[str]) -> list[Call]:
        """What takes the triggers of events away, histograms by truncation."""
        paths = [
            f"{_EVENTS}/{system}/{name}/trigger"
            for name in names
            for system in (tracefs.SYSTEM, tracefs.MULTI_SYSTEM)
        ]
        if not paths:
            return []
        results = self._channel.call(ACTOR, [["slurp", path, _LIMIT] for path in paths])
        calls: list[Call] = []
        for path, text in zip(paths, map(_text, results), strict=True):
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            if lines:
                calls.append(_spill(path, "", os.O_TRUNC))
                calls += [_spill(path, f"!{removal_of(line)}", os.O_APPEND) for line in lines]
        return calls

    def wait_until_new(self, seconds: float) -> bool:
        """Tidy until nothing is left; False when that does not come about in time.

        ``seconds`` are those of an idle machine.
        """
        deadline = self._channel.deadline(seconds, "a system without events")
        while not self.tidy():
            if deadline.expired:
                return False
            self._channel.pause(deadline)
        return True

    def load_module(self, image: bytes) -> int:
        """Load a kernel module, given as the content of its file; the error number, 0 for none."""
        text = {"in": b"\0".hex()}
        call = sys_call("init_module", {"in": image.hex()}, len(image), text)
        (result,) = self._channel.call(ACTOR, [call])
        return int(result["errno"])

    def has_user_events(self) -> bool:
        """Whether this kernel was built with user_events.

        A file that is there and cannot be read is a mistake of the kernel, for cases to find.
        """
        actor, calls = _WHETHER_BUILT
        return any(result["errno"] != ENOENT for result in self._channel.call(actor, calls))

    def next_multi_id(self) -> int:
        """The number the next multi-format event will get: registers one to see.

        The counter is shared by the whole system and moves with every attempt
        (trace_events_user.c:user_event_set_tp_name).
        """
        name = _MEMORY + 256
        reg = uapi.USER_REG.pack(
            {
                "size": uapi.USER_REG.size,
                "enable_size": 4,
                "flags": uapi.USER_EVENT_REG_MULTI_FORMAT,
                "enable_addr": _MEMORY + 512,
                "name_args": name,
            }
        )
        self._channel.call("", [["spawn", _GAUGE]])
        results = self._channel.call(
            _GAUGE,
            [
                _map_page(),
                ["poke", _MEMORY, reg.hex()],
                ["poke", name, (_GAUGE.encode() + b"\0").hex()],
                _open_data(),
                sys_call("ioctl", fd(_SLOT), uapi.DIAG_IOCSREG, _MEMORY),
                ["slurp", tracefs.STATUS, _LIMIT],
            ],
        )
        self.kill([_GAUGE])
        found = re.search(rf"^{_GAUGE}\.([0-9a-f]+)$", _text(results[-1]), re.MULTILINE)
        # A kernel that cannot register the gauge fails the cases about multi-format events.
        return int(found[1], 16) + 1 if found else 0

    def _look(self) -> list[str]:
        return list(map(_text, self._channel.call(*LOOK)))


def clearing() -> Call:
    """What empties the trace buffer: the next event may get an id that is found in it."""
    return _spill(tracefs.TRACE, "", os.O_TRUNC)


def _others_in(definitions: str) -> list[str]:
    """GROUP/NAME of the probes on events, and synthetic events, that dynamic_events shows."""
    found = re.findall(r"^[es]:(\S+)", definitions, re.MULTILINE)
    return [str(name) for name in found]


def _used_in(status: str) -> list[str]:
    """Names of the tracepoints that are in use, behind the place that some kernels show."""
    lines = [
        line.partition(" # Used by")[0] for line in status.splitlines() if " # Used by" in line
    ]
    return [re.sub(r"^\d+:", "", line).partition(" ")[0] for line in lines]


def removal_of(line: str) -> str:
    """What a line of `trigger` is called where it is to be removed: without count and condition."""
    head = re.sub(r":(unlimited|count=\d+)( .*)?$", "", line)
    return head.partition(" [")[0]


def _name_in(line: str) -> str:
    """The name of an event that dynamic_events shows."""
    if line.startswith(rfc_v1.PREFIX):
        # The name may have spaces; behind it are fields, or who listens.
        shown = line.removeprefix(rfc_v1.PREFIX)
        return re.sub(r" \(Used by[a-z ]*\)$", "", shown.partition(rfc_v1.FIELD_SEPARATOR)[0])
    return line.removeprefix(grammar.PREFIX).partition(" ")[0]


def _map_page() -> Call:
    return sys_call("mmap", _MEMORY, _PAGE, _READ_WRITE, _FIXED, -1, 0)


def _open_data() -> Call:
    # Not for writing, which would keep tracefs from being made read-only.
    return sys_call("openat", _AT_FDCWD, path_in(tracefs.DATA), os.O_RDONLY, 0, slot=_SLOT)


def _spill(path: str, text: str, flags: int = 0) -> Call:
    raw = text.encode("latin-1")
    return ["spill", path, raw.hex(), os.O_WRONLY | flags]


def _text(result: dict[str, Any]) -> str:
    return bytes.fromhex(result["data"] or "").decode("latin-1")


_BEGINNING: tuple[Request, ...] = (
    ("", (["spawn", ACTOR],)),
    (ACTOR, (_map_page(), _open_data(), *(_spill(path, "2") for path in _SETTINGS))),
)
_WHETHER_BUILT: Request = (
    ACTOR,
    tuple(["slurp", path, _LIMIT] for path in (tracefs.STATUS, tracefs.DATA)),
)
#: What a janitor asks of a new guest, in this order.
OPENING = (*_BEGINNING, _WHETHER_BUILT)
#: How it looks for what programs have left behind.
LOOK: Request = (
    ACTOR,
    (
        *(
            ["slurp", path, _LIMIT]
            for path in (
                tracefs.STATUS,
                tracefs.DYNAMIC_EVENTS,
                tracefs.TRACING_ON,
                tracefs.MAXIMUM,
                tracefs.PROBE_ATTACH,
                tracefs.SNAPSHOT,
            )
        ),
        ["list", _INSTANCES],
        *(["slurp", path, _LIMIT] for path in _FILTERS),
    ),
)
