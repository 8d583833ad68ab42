"""Text files of tracefs: status, dynamic_events, events/, trace and others."""

from __future__ import annotations

import os
from collections.abc import Sequence

from conformance import ops
from conformance.client.lockstep import Lockstep
from conformance.model.state import trace_instance
from conformance.model.state.trace_instance import TOP, Record
from conformance.ops import Observation, View
from conformance.ops.decoding import trace_text

ROOT = "/sys/kernel/tracing"
DATA = f"{ROOT}/user_events_data"
STATUS = f"{ROOT}/user_events_status"
# Its counterpart in the first version of user_events.
MMAP = f"{ROOT}/user_events_mmap"
DYNAMIC_EVENTS = f"{ROOT}/dynamic_events"
TRACE = f"{ROOT}/trace"
TRACING_ON = f"{ROOT}/tracing_on"
SNAPSHOT = f"{ROOT}/snapshot"
ERROR_LOG = f"{ROOT}/error_log"
# Parameters of the helper module that attaches its own probe.
PROBE_ATTACH = "/sys/module/uevt_probe/parameters/attach"
PROBE_DETACH = "/sys/module/uevt_probe/parameters/detach"
MAXIMUM = "/proc/sys/kernel/user_events_max"
KPROBE_EVENTS = f"{ROOT}/kprobe_events"
# Group of the kprobes of programs, below events/.
KPROBES = "uevt"
SYSTEM = "user_events"
EVENTS = f"{ROOT}/events/{SYSTEM}"
MULTI_SYSTEM = "user_events_multi"
_APPEND = os.O_WRONLY | os.O_APPEND


class Tracefs:
    """Files of tracefs, read and written by a root process.

    Reads compare only lines of the program's own events unless ``whole`` is set, which needs
    isolation *global*.  ``eventually`` repeats a read until no pending work changes it.
    """

    def __init__(
        self, lockstep: Lockstep, actor: str, prefix: str, timeout_s: float, *, name: str = TOP
    ) -> None:
        self.root = f"{ROOT}/instances/{name}" if name else ROOT
        self._name = name
        self._lockstep = lockstep
        self.actor = actor
        self.prefix = prefix
        self._timeout_s = timeout_s

    def instance(self, name: str) -> Instance:
        """An instance, used by the same process."""
        return Instance(self._lockstep, self.actor, self.prefix, self._timeout_s, name=name)

    def read(self, path: str, view: View = View.EXACT, *, eventually: bool = False) -> Observation:
        """Read a whole file."""
        operation = ops.ReadFile(self.actor, path, view, self.prefix)
        return self._seen(operation, eventually=eventually)

    def write(
        self,
        path: str,
        data: str | bytes,
        flags: int = os.O_WRONLY,
        *,
        eventually: bool = False,
    ) -> Observation:
        """Open a file, one write(2), close.

        ``eventually`` repeats that until deferred references are dropped.
        """
        raw = data.encode() if isinstance(data, str) else data
        operation = ops.WriteFile(self.actor, path, raw, flags)
        return self._seen(operation, eventually=eventually)

    def status(self, *, whole: bool = False, eventually: bool = False) -> str:
        """user_events_status: own lines, or all lines with the totals."""
        view = View.EXACT if whole else View.OWN
        return self.read(STATUS, view, eventually=eventually).text

    def dynamic_events(self, *, whole: bool = False, eventually: bool = False) -> str:
        """dynamic_events: own lines, or all lines."""
        view = View.EXACT if whole else View.OWN
        return self.read(DYNAMIC_EVENTS, view, eventually=eventually).text

    def definitions(self, *, whole: bool = False) -> str:
        """dynamic_events of the first version, without the listeners of the events."""
        prefix = "" if whole else self.prefix
        return self._seen(ops.ReadFile(self.actor, DYNAMIC_EVENTS, View.DEFINITIONS, prefix)).text

    def command(
        self, text: str | bytes, flags: int = _APPEND, *, eventually: bool = False
    ) -> Observation:
        """Write to dynamic_events, as ``echo … >>`` does."""
        return self.write(DYNAMIC_EVENTS, text, flags, eventually=eventually)

    def event_path(self, name: str, file: str, system: str = SYSTEM) -> str:
        """The path of a file of an event."""
        return self.path(f"events/{system}/{name}/{file}")

    def path(self, file: str) -> str:
        """The path of a file of the instance."""
        return f"{self.root}/{file}"

    def enable(self, name: str, *, system: str = SYSTEM) -> Observation:
        """Enable an event for ftrace."""
        return self.write(self.event_path(name, "enable", system), "1\n")

    def disable(self, name: str, *, system: str = SYSTEM) -> Observation:
        """Disable an event for ftrace."""
        return self.write(self.event_path(name, "enable", system), "0\n")

    def attach_probe(self, name: str) -> Observation:
        """Attach the helper module's probe to an event, independent of ftrace and perf."""
        return self.write(PROBE_ATTACH, f"{name}\n")

    def detach_probe(self) -> Observation:
        """Detach the helper module's probe."""
        return self.write(PROBE_DETACH, "\n")

    def add_kprobe(self, name: str, function: str) -> Observation:
        """Add a kprobe at the entry of a kernel function."""
        return self.write(KPROBE_EVENTS, f"p:{KPROBES}/{name} {function}\n", _APPEND)

    def remove_kprobe(self, name: str) -> Observation:
        """Remove a kprobe."""
        return self.write(KPROBE_EVENTS, f"-:{KPROBES}/{name}\n", _APPEND)

    def enabled(self, name: str, *, system: str = SYSTEM) -> Observation:
        """The content of `enable`."""
        return self.read(self.event_path(name, "enable", system))

    def format(self, name: str, *, system: str = SYSTEM) -> str:
        """`format` without id and array lengths."""
        return self.read(self.event_path(name, "format", system), View.STRUCTURE).text

    def format_with_lengths(self, name: str, *, system: str = SYSTEM) -> str:
        """`format` with array lengths."""
        return self.read(self.event_path(name, "format", system), View.ARRAYS).text

    def records(self, name: str | None = None) -> list[str]:
        """Bodies of the trace lines of own events, or of one event, oldest first.

        Before 6.4 lines have no name: then the payloads of all events.
        """
        return self._records("trace", self.sizes, self.prefix if name is None else f"{name}:")

    def records_and_stacks(self) -> list[str]:
        """``records``, with "<stack trace>" where a kernel stack was recorded."""
        return self._records("trace", self.sizes, self.prefix, "<stack trace>")

    def snapshot(self) -> list[str]:
        """Bodies of the lines of own events in the snapshot buffer; [] without one."""
        return self._records("snapshot", self._dumped(self._modelled.snapshot or []), self.prefix)

    def bodies(self, *, eventually: bool = False) -> list[str]:
        """Bodies of all trace lines, oldest first; the number of an unknown type is N."""
        return self._records("trace", self.sizes, "", eventually=eventually)

    def _records(
        self, file: str, sizes: tuple[int, ...], *prefixes: str, eventually: bool = False
    ) -> list[str]:
        operation = ops.ReadFile(self.actor, self.path(file), View.RECORDS, sizes=sizes)
        return trace_text.bodies(self._seen(operation, eventually=eventually).text, *prefixes)

    def distinct_records(self) -> list[str]:
        """``records``, each once and sorted, for concurrent writers."""
        operation = ops.ReadFile(self.actor, self.path("trace"), View.DISTINCT, sizes=self.sizes)
        return self._seen(operation).text.splitlines()

    def _seen(self, operation: ops.Operation, *, eventually: bool = False) -> Observation:
        if eventually:
            return self._lockstep.eventually(operation, self._timeout_s)
        return self._lockstep.run(operation)[0]

    @property
    def _modelled(self) -> trace_instance.Instance:
        return self._lockstep.model.world.instances[self._name]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Payload bytes of the records in the buffer if the kernel dumps records."""
        return self._dumped(self._modelled.records)

    def _dumped(self, records: Sequence[Record]) -> tuple[int, ...]:
        world = self._lockstep.model.world
        if world.profile.has("remote_enable"):
            return ()
        return tuple(each.size for each in records if world.table.with_id(each.id) is not None)

    @property
    def recorded_sizes(self) -> tuple[int, ...]:
        """Payload bytes of all records in the buffer."""
        return tuple(each.size for each in self._modelled.records)

    def make_directory(self, file: str) -> Observation:
        """mkdir(2) within the instance."""
        return self._seen(ops.MakeDirectory(self.actor, self.path(file)))

    def remove_directory(self, file: str) -> Observation:
        """rmdir(2) within the instance."""
        return self._seen(ops.RemoveDirectory(self.actor, self.path(file)))

    def errors(self) -> str:
        """`error_log` without the times."""
        return self.read(self.path("error_log"), View.ERRORS).text

    def clear_errors(self) -> Observation:
        """Empty `error_log`, which every user of tracefs can read."""
        return self.write(self.path("error_log"), "\n", os.O_WRONLY | os.O_TRUNC)

    def set_processors(self, mask: str) -> Observation:
        """Write `tracing_cpumask`."""
        return self.write(self.path("tracing_cpumask"), f"{mask}\n")

    @property
    def processors(self) -> str:
        """The content of `tracing_cpumask`."""
        return self.read(self.path("tracing_cpumask")).text

    def directory(self, name: str, system: str = SYSTEM) -> EventDirectory:
        """The files of an event: filter, triggers, histogram."""
        return EventDirectory(self, name, system)

    def clear_trace(self) -> Observation:
        """Empty the trace buffer."""
        return self.write(self.path("trace"), "\n", os.O_WRONLY | os.O_TRUNC)

    def mode(self, path: str) -> int:
        """Permission bits of a path."""
        return self._seen(ops.Stat(self.actor, path)).value


class Instance(Tracefs):
    """An instance of the program, which makes and removes it."""

    def make(self) -> Observation:
        """mkdir(2)."""
        return self._seen(ops.MakeDirectory(self.actor, self.root))

    def of(self, actor: str) -> Instance:
        """The instance, used by another process."""
        return Instance(self._lockstep, actor, self.prefix, self._timeout_s, name=self._name)

    def remove(self) -> Observation:
        """rmdir(2)."""
        return self._seen(ops.RemoveDirectory(self.actor, self.root))


class EventDirectory:
    """Files of one event: filter, triggers, histogram."""

    def __init__(self, tracefs: Tracefs, name: str, system: str) -> None:
        self._tracefs = tracefs
        self._name = name
        self._system = system

    def _path(self, file: str) -> str:
        return self._tracefs.event_path(self._name, file, self._system)

    def set_filter(self, text: str) -> Observation:
        """Write `filter`, as ``echo … >`` does."""
        return self._tracefs.write(self._path("filter"), f"{text}\n")

    @property
    def filter(self) -> str:
        """The content of `filter`."""
        return self._tracefs.read(self._path("filter")).text

    def trigger(self, text: str, flags: int = _APPEND) -> Observation:
        """Write `trigger`, as ``echo … >>`` does; ``>`` would remove histograms."""
        return self._tracefs.write(self._path("trigger"), f"{text}\n", flags)

    @property
    def triggers(self) -> str:
        """The triggers in `trigger`, "" for none."""
        return self._tracefs.read(self._path("trigger"), View.TRIGGERS).text

    @property
    def available(self) -> str:
        """All of `trigger`: without triggers, the list of available ones."""
        return self._tracefs.read(self._path("trigger")).text

    @property
    def hist(self) -> str:
        """The content of `hist`."""
        return self._tracefs.read(self._path("hist")).text

    @property
    def enabled(self) -> str:
        """The content of `enable`."""
        return self._tracefs.read(self._path("enable")).text
