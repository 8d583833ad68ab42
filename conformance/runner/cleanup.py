"""Restore the guest-wide state that a case changed, so that cases need not do it themselves.

After every case, and limited to what it touched (``conformance.runner.leftovers``):

==========================================  =====================================================
state                                       restored by
==========================================  =====================================================
tracefs superblock: read-only, gid          remount read-write with ``gid=0``
mode and owner of the files in ``GUARDED``  chown(2), chmod(2) to those before the first case
the files in ``SETTINGS``                   the text they showed before the first case
triggers and histograms                     ``!`` and truncation, the last file written first
filters of systems and of kernel events     ``0``
instances                                   rmdir(2), repeated while their users go away
set_event_pid, set_event_notrace_pid        truncation
snapshot                                    ``0``, which frees the spare buffer
eprobes, synthetic events, kprobes          disabled and removed, before their events go
probe of the helper module                  its parameter ``detach``
tracing_on, user_events_max                 ``1``, the kernel's default
enabled events of the kernel                truncation of set_event
user events: enabled, persistent            system ``enable``, then DIAG_IOCSDEL
error_log, trace                            truncation
==========================================  =====================================================

Processes, descriptors, mappings and registrations end with the processes of the case
(``conformance.runner.process_pool``).  Of user events only those that persist are deleted, before
the next case of isolation *global* at the latest; the kernel has to remove the others
(``conformance.runner.lingering_events``).  Nothing else is restored: lockdown, modules, taint,
mounts outside of the mount namespaces of the case, other sysctls.  If an invariant of
``conformance.runner.guest_invariants`` differs afterwards, or a case of isolation *global* did not
pass, the guest is replaced, as it is after every case of isolation *fatal*.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from errno import EBUSY
from typing import Any

from msgspec.structs import replace

from conformance import ops
from conformance.abi import grammar, rfc_v1, uapi
from conformance.client import tracefs
from conformance.model.state.events import DEFAULT_MAX_EVENTS
from conformance.ops import Operation, credentials
from conformance.ops.calls import Call, Request, fd, path_in, sys_call
from conformance.runner.guest import Channel
from conformance.runner.guest_invariants import GUARDED, GuestInvariants
from conformance.runner.guest_setup import (
    ACTOR,
    DATA_SLOT,
    LIMIT,
    MEMORY,
    text_of,
    write_file,
)
from conformance.runner.leftovers import Leftovers
from conformance.runner.patience import Patience

_EVENTS = f"{tracefs.ROOT}/events"
_INSTANCES = f"{tracefs.ROOT}/instances"
_SET_EVENT = f"{tracefs.ROOT}/set_event"
_PID_LISTS = (f"{tracefs.ROOT}/set_event_pid", f"{tracefs.ROOT}/set_event_notrace_pid")
# The option of the tracefs superblock as it is mounted first.
_OPTIONS = "gid=0"
# First words of `snapshot` without a spare buffer (trace.c:print_snapshot_help).
_SPARE_FREED = "* Snapshot is freed *"
# Kprobes, eprobes and synthetic events in dynamic_events.
_PROBES = ("p:", "e:", "s:")
# Seconds of an idle machine for the users of an instance to close its files.
_INSTANCE_TIMEOUT = 5.0
#: The request that finds events, probes, instances and changed settings.
LOOK: Request = (
    ACTOR,
    (
        *(
            ["slurp", path, LIMIT]
            for path in (
                tracefs.DYNAMIC_EVENTS,
                tracefs.TRACING_ON,
                tracefs.MAXIMUM,
                tracefs.PROBE_ATTACH,
                tracefs.SNAPSHOT,
            )
        ),
        ["list", _INSTANCES],
        *(["slurp", path, LIMIT] for path in _PID_LISTS),
    ),
)
_EVERYTHING = Leftovers(objects=True)


class Cleanup:
    """Clean up one guest.  Raises what the channel raises."""

    def __init__(self, channel: Channel, invariants: GuestInvariants, patience: Patience) -> None:
        self._channel = channel
        self._invariants = invariants
        self._patience = patience
        # Names of events that stay until they are deleted.
        self._lasting: set[str] = set()

    def restore(self, left: Leftovers, then: Sequence[Call]) -> list[dict[str, Any]]:
        """Restore what is left after ``detach``, and perform the calls ``then``; their results."""
        self._lasting.update(left.events or ())
        calls = [*self._calls(left)[0], *then]
        results = self._channel.call(ACTOR, calls) if calls else []
        removals = [call for call in calls if _removes_instance(call)]
        what = "an instance that is still in use"
        deadline = self._patience.deadline(self._channel, _INSTANCE_TIMEOUT, what)
        while _busy(calls, results) and not deadline.expired:
            self._channel.pause(deadline)
            calls = [*removals, *then]
            results = self._channel.call(ACTOR, calls)
        return results[len(results) - len(then) :]

    def detach(self, left: Leftovers) -> Leftovers:
        """Remove triggers and probes while their events exist; what is left then.

        To remove an eprobe of an event that was freed corrupts memory (bug eprobe-event-freed), and
        so does a write to the `trigger` of an event that is freed after open(2), in 6.9.0.
        """
        if not (left.triggers or left.eprobes):
            return left
        shown = self._texts(["slurp", path, LIMIT] for path in left.triggers)
        calls = _without_triggers(list(zip(left.triggers, shown, strict=True)))
        if left.eprobes:
            definitions, _, _, _, _, instances, *_ = self._texts(LOOK[1])
            calls += _without_probes(definitions, instances)
        if calls:
            self._channel.call(ACTOR, calls)
        return replace(left, triggers=(), eprobes=False)

    def tidy(self) -> list[str]:
        """Remove what earlier programs left, and name it."""
        calls, left = self._calls(_EVERYTHING)
        if calls:
            self._channel.call(ACTOR, calls)
        return left

    def wait_until_clean(self, seconds: float) -> list[str]:
        """Tidy until nothing is left; what is left after ``seconds`` of an idle machine."""
        deadline = self._patience.deadline(self._channel, seconds, "a system without events")
        while left := self.tidy():
            if deadline.expired:
                return left
            self._channel.pause(deadline)
        self._lasting.clear()
        return []

    def _calls(self, left: Leftovers) -> tuple[list[Call], list[str]]:
        """Calls that restore what is left, in an order in which none is refused; what is left.

        That is definitions, instances, and files that do not show what they should.
        """
        found = self._texts(LOOK[1]) if left.objects else []
        calls = self._superblock(left)
        calls += [write_file(path, self._invariants.setting(path)) for path in left.settings]
        calls += [write_file(path, "0") for path in left.filters]
        if left.kernel_events:
            calls.append(write_file(_SET_EVENT, "\n", os.O_TRUNC))
        names: list[str] = []
        if found:
            if left.events is None:
                self._lasting.update(map(_event_name, _user_events(found[0])))
            objects = _without_objects(self._lasting, *found)
            names = [*found[0].splitlines(), *found[5].split()]
            names = names or [str(call[1]) for call in objects]
            calls += objects
        if left.errors:
            calls.append(write_file(tracefs.ERROR_LOG, "\n", os.O_TRUNC))
        if left.records:
            # The next event may get an id that the buffer still refers to.
            calls.append(write_file(tracefs.TRACE, "", os.O_TRUNC))
        return calls, names

    def _texts(self, reads: Iterable[Call]) -> list[str]:
        calls = list(reads)
        return list(map(text_of, self._channel.call(ACTOR, calls))) if calls else []

    def _superblock(self, left: Leftovers) -> list[Call]:
        operations: list[Operation] = []
        if left.superblock:
            remount = credentials.MS_REMOUNT
            operations.append(credentials.Mount(ACTOR, "none", tracefs.ROOT, "", remount, _OPTIONS))
        for path in GUARDED if left.modes else ():
            if (attributes := self._invariants.attributes(path)) is not None:
                mode, user, group = attributes
                operations.append(ops.Chown(ACTOR, path, user, group))
                operations.append(ops.Chmod(ACTOR, path, mode))
        return [call for operation in operations for call in operation.calls()]


def _without_objects(
    lasting: Collection[str],
    definitions: str,
    tracing_on: str,
    maximum: str,
    probed: str,
    snapshot: str,
    instances: str,
    *pid_lists: str,
) -> list[Call]:
    """Calls that remove what LOOK found, of events the ``lasting`` ones."""
    # Before the last reference to an event of an eprobe is dropped.
    calls = _without_probes(definitions, instances)
    calls += [_remove_instance(name) for name in instances.split()]
    calls += [
        write_file(path, "\n", os.O_TRUNC)
        for path, text in zip(_PID_LISTS, pid_lists, strict=True)
        if text
    ]
    if snapshot and _SPARE_FREED not in snapshot:
        calls.append(write_file(tracefs.SNAPSHOT, "0"))
    if probed.strip():
        calls.append(write_file(tracefs.PROBE_DETACH, "\n"))
    if tracing_on != "1\n":
        calls.append(write_file(tracefs.TRACING_ON, "1"))
    # Kernels before 6.4 have no such limit.
    if maximum not in ("", f"{DEFAULT_MAX_EVENTS}\n"):
        calls.append(write_file(tracefs.MAXIMUM, str(DEFAULT_MAX_EVENTS)))
    # user_events_status may deny that an event is enabled: programs can write the status page.
    if _user_events(definitions):
        calls += [
            write_file(f"{_EVENTS}/{system}/enable", "0")
            for system in (tracefs.SYSTEM, tracefs.MULTI_SYSTEM)
        ]
    names = sorted(map(_event_name, _user_events(definitions)))
    return calls + [call for name in names if name in lasting for call in _deletion(name)]


def _without_probes(definitions: str, instances: str) -> list[Call]:
    """Calls that disable and remove the probes in dynamic_events, those on events first."""
    places = [_EVENTS, *(f"{_INSTANCES}/{each}/events" for each in instances.split())]
    # `e:GROUP/NAME SYSTEM.EVENT`, `p:GROUP/NAME FUNCTION` or `s:GROUP/NAME<TAB>FIELDS`.
    names = [name for _, name in sorted(re.findall(r"^([eps]):(\S+)", definitions, re.MULTILINE))]
    return [
        *(write_file(f"{place}/{name}/enable", "0") for name in names for place in places),
        *(write_file(tracefs.DYNAMIC_EVENTS, f"-:{name}", os.O_APPEND) for name in names),
    ]


def _deletion(name: str) -> list[Call]:
    """Calls that delete a user event."""
    # By name: `-:` compares definitions, and some do not match their own text.
    return [
        ["poke", MEMORY, (name.encode("latin-1") + b"\0").hex()],
        sys_call("ioctl", fd(DATA_SLOT), uapi.DIAG_IOCSDEL, MEMORY),
    ]


def _without_triggers(files: Sequence[tuple[str, str]]) -> list[Call]:
    """Calls that remove the triggers of files, given with the texts they show."""
    calls: list[Call] = []
    # Only histograms are removed by truncation; it comes last, since it may free the event.
    truncations: list[Call] = []
    for path, text in files:
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        if lines:
            truncations.append(write_file(path, "", os.O_TRUNC))
            calls += [write_file(path, f"!{removal_of(line)}", os.O_APPEND) for line in lines]
            calls.append(truncations[-1])
    # A histogram whose variable another one reads is refused until that is gone.
    return calls + (truncations if len(truncations) > 1 else [])


def removal_of(line: str) -> str:
    """The name by which a line of `trigger` is removed: without count and condition."""
    head = re.sub(r":(unlimited|count=\d+)( .*)?$", "", line)
    return head.partition(" [")[0]


def _user_events(definitions: str) -> list[str]:
    """The lines of user events in dynamic_events."""
    return [line for line in definitions.splitlines() if not line.startswith(_PROBES)]


def _event_name(line: str) -> str:
    """The name of a user event in a line of dynamic_events."""
    if line.startswith(rfc_v1.PREFIX):
        # The name may contain spaces; fields or users follow it.
        shown = line.removeprefix(rfc_v1.PREFIX)
        return re.sub(r" \(Used by[a-z ]*\)$", "", shown.partition(rfc_v1.FIELD_SEPARATOR)[0])
    return line.removeprefix(grammar.PREFIX).partition(" ")[0]


def _remove_instance(name: str) -> Call:
    return sys_call("rmdir", path_in(f"{_INSTANCES}/{name}"))


_RMDIR = _remove_instance("")[1]


def _removes_instance(call: Call) -> bool:
    return list(call[:2]) == ["sys", _RMDIR]


def _busy(calls: Sequence[Call], results: Sequence[dict[str, Any]]) -> bool:
    """Whether an instance could not be removed because a process still uses it."""
    return any(
        _removes_instance(call) and result["errno"] == EBUSY
        for call, result in zip(calls, results, strict=True)
    )
