"""The text files of tracefs as a tracer uses them: status, dynamic_events, events/…."""

from __future__ import annotations

import os
from collections.abc import Sequence

from conformance import ops
from conformance.client.lockstep import Lockstep
from conformance.model.state.trace_instance import TOP, Record
from conformance.ops import Observation, View

ROOT = "/sys/kernel/tracing"
DATA = f"{ROOT}/user_events_data"
STATUS = f"{ROOT}/user_events_status"
# What the first version of user_events had in its place.
MMAP = f"{ROOT}/user_events_mmap"
DYNAMIC_EVENTS = f"{ROOT}/dynamic_events"
TRACE = f"{ROOT}/trace"
TRACING_ON = f"{ROOT}/tracing_on"
SNAPSHOT = f"{ROOT}/snapshot"
ERROR_LOG = f"{ROOT}/error_log"
# The parameters of the helper module that attaches a probe of its own.
PROBE_ATTACH = "/sys/module/uevt_probe/parameters/attach"
PROBE_DETACH = "/sys/module/uevt_probe/parameters/detach"
MAXIMUM = "/proc/sys/kernel/user_events_max"
KPROBE_EVENTS = f"{ROOT}/kprobe_events"
# The directory below events/ of the kprobes of programs.
KPROBES = "uevt"
SYSTEM = "user_events"
EVENTS = f"{ROOT}/events/{SYSTEM}"
MULTI_SYSTEM = "user_events_multi"
_APPEND = os.O_WRONLY | os.O_APPEND


class Tracefs:
    """A root process that reads and writes the files of tracefs.

    Reading methods compare only the lines of the program's own events unless ``whole``
    is set, which a case of isolation *global* may do.  ``eventually`` repeats a reading
    until nothing is pending that changes it.
    """

    def __init__(
        self, lockstep: Lockstep, actor: str, prefix: str, timeout_s: float, *, name: str = TOP
    ) -> None:
        self.root = f"{ROOT}/instances/{name}" if name else ROOT
        self._name = name
        self._lockstep = lockstep
        self._actor = actor
        self.prefix = prefix
        self._timeout_s = timeout_s

    def instance(self, name: str) -> Instance:
        """An instance, used by the same process."""
        return Instance(self._lockstep, self._actor, self.prefix, self._timeout_s, name=name)

    def read(self, path: str, view: View = View.EXACT, *, eventually: bool = False) -> Observation:
        """Read a whole file."""
        operation = ops.ReadFile(self._actor, path, view, self.prefix)
        if eventually:
            return self._lockstep.eventually(operation, self._timeout_s)
        return self._lockstep.run(operation)[0]

    def write(self, path: str, data: str | bytes, flags: int = os.O_WRONLY) -> Observation:
        """Open a file, give data to one write(2), close it."""
        raw = data.encode() if isinstance(data, str) else data
        return self._lockstep.run(ops.WriteFile(self._actor, path, raw, flags))[0]

    def status(self, *, whole: bool = False, eventually: bool = False) -> str:
        """user_events_status: own lines, or all of it with the totals."""
        view = View.EXACT if whole else View.OWN
        return self.read(STATUS, view, eventually=eventually).text

    def dynamic_events(self, *, whole: bool = False, eventually: bool = False) -> str:
        """dynamic_events: own lines, or all of it."""
        view = View.EXACT if whole else View.OWN
        return self.read(DYNAMIC_EVENTS, view, eventually=eventually).text

    def definitions(self, *, whole: bool = False) -> str:
        """dynamic_events of the first version, without who listens to the events."""
        operation = ops.ReadFile(
            self._actor, DYNAMIC_EVENTS, View.DEFINITIONS, "" if whole else self.prefix
        )
        return self._lockstep.run(operation)[0].text

    def command(
        self,
        text: str | bytes,
        flags: int = os.O_WRONLY | os.O_APPEND,
        *,
        eventually: bool = False,
    ) -> Observation:
        """Write to dynamic_events, as ``echo … >>`` does.

        ``eventually`` repeats it until references that are dropped later are gone.
        """
        if not eventually:
            return self.write(DYNAMIC_EVENTS, text, flags)
        raw = text.encode() if isinstance(text, str) else text
        operation = ops.WriteFile(self._actor, DYNAMIC_EVENTS, raw, flags)
        return self._lockstep.eventually(operation, self._timeout_s)

    def event_path(self, name: str, file: str, system: str = SYSTEM) -> str:
        """The path of a file of an event."""
        return self.path(f"events/{system}/{name}/{file}")

    def path(self, file: str) -> str:
        """The path of a file of the instance."""
        return f"{self.root}/{file}"

    def enable(self, name: str, *, system: str = SYSTEM) -> Observation:
        """Make ftrace listen to an event."""
        return self.write(self.event_path(name, "enable", system), "1\n")

    def disable(self, name: str, *, system: str = SYSTEM) -> Observation:
        """Make ftrace stop listening."""
        return self.write(self.event_path(name, "enable", system), "0\n")

    def attach_probe(self, name: str) -> Observation:
        """Let the helper module listen to an event: neither ftrace nor perf."""
        return self.write(PROBE_ATTACH, f"{name}\n")

    def detach_probe(self) -> Observation:
        """Let the helper module stop listening."""
        return self.write(PROBE_DETACH, "\n")

    def add_kprobe(self, name: str, function: str) -> Observation:
        """A kprobe at the entry of a function of the kernel."""
        return self.write(KPROBE_EVENTS, f"p:{KPROBES}/{name} {function}\n", _APPEND)

    def remove_kprobe(self, name: str) -> Observation:
        """Take a kprobe away."""
        return self.write(KPROBE_EVENTS, f"-:{KPROBES}/{name}\n", _APPEND)

    def enabled(self, name: str, *, system: str = SYSTEM) -> Observation:
        """What `enable` of an event shows."""
        return self.read(self.event_path(name, "enable", system))

    def format(self, name: str, *, system: str = SYSTEM) -> str:
        """The structure of `format`: the id and the lengths of arrays are left out."""
        return self.read(self.event_path(name, "format", system), View.STRUCTURE).text

    def format_with_lengths(self, name: str, *, system: str = SYSTEM) -> str:
        """`format` with its array lengths, which only the case about them reads."""
        return self.read(self.event_path(name, "format", system), View.ARRAYS).text

    def records(self, name: str | None = None) -> list[str]:
        """Bodies of the trace lines of own events, or of one by name, oldest first.

        Before 6.4 no line has a name: they are the payloads of all events then.
        """
        prefix = self.prefix if name is None else f"{name}:"
        return self._records(self.path("trace"), View.RECORDS, prefix, self.sizes)

    def distinct_records(self) -> list[str]:
        """The same, each once and in the order of the alphabet: of those who recorded at once."""
        return self._records(self.path("trace"), View.DISTINCT, self.prefix, self.sizes)

    def records_and_stacks(self) -> list[str]:
        """The same, with "<stack trace>" where the stack of the kernel was recorded."""
        return self._records(self.path("trace"), View.STACKS, self.prefix, self.sizes)

    def snapshot(self) -> list[str]:
        """Bodies of the lines of own events in the spare buffer; [] where there is none."""
        spare = self._lockstep.model.world.instances[self._name].snapshot or []
        return self._records(self.path("snapshot"), View.RECORDS, self.prefix, self._dumped(spare))

    def _records(self, path: str, view: View, prefix: str, sizes: tuple[int, ...]) -> list[str]:
        operation = ops.ReadFile(self._actor, path, view, prefix, sizes)
        return self._lockstep.run(operation)[0].text.splitlines()

    def bodies(self, *, eventually: bool = False) -> list[str]:
        """Bodies of all trace lines, oldest first; a type that is unknown has the number N."""
        operation = ops.ReadFile(
            self._actor, self.path("trace"), View.BODIES, self.prefix, self.sizes
        )
        if eventually:
            return self._lockstep.eventually(operation, self._timeout_s).text.splitlines()
        return self._lockstep.run(operation)[0].text.splitlines()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of the payloads in the buffer, where records are dumped."""
        return self._dumped(self._lockstep.model.world.instances[self._name].records)

    def _dumped(self, records: Sequence[Record]) -> tuple[int, ...]:
        world = self._lockstep.model.world
        if world.profile.has("remote_enable"):
            return ()
        return tuple(each.size for each in records if world.table.with_id(each.id) is not None)

    @property
    def recorded_sizes(self) -> tuple[int, ...]:
        """Bytes of the payloads in the buffer, decoded or not."""
        return tuple(each.size for each in self._lockstep.model.world.instances[self._name].records)

    def make_directory(self, file: str) -> Observation:
        """mkdir(2) within the instance."""
        return self._lockstep.run(ops.MakeDirectory(self._actor, self.path(file)))[0]

    def remove_directory(self, file: str) -> Observation:
        """rmdir(2) within the instance."""
        return self._lockstep.run(ops.RemoveDirectory(self._actor, self.path(file)))[0]

    def errors(self) -> str:
        """What `error_log` shows, without the times."""
        return self.read(self.path("error_log"), View.ERRORS).text

    def set_processors(self, mask: str) -> Observation:
        """Write `tracing_cpumask`: on which processors anything is recorded."""
        return self.write(self.path("tracing_cpumask"), f"{mask}\n")

    @property
    def processors(self) -> str:
        """What `tracing_cpumask` shows."""
        return self.read(self.path("tracing_cpumask")).text

    def directory(self, name: str, system: str = SYSTEM) -> EventDirectory:
        """What can be hung on an event."""
        return EventDirectory(self, name, system)

    def clear_trace(self) -> Observation:
        """Empty the trace buffer."""
        return self.write(self.path("trace"), "\n", os.O_WRONLY | os.O_TRUNC)

    def mode(self, path: str) -> int:
        """Permission bits of a path."""
        return self._lockstep.run(ops.Stat(self._actor, path))[0].value


class Instance(Tracefs):
    """The files of an instance of the program's own, which it makes and removes."""

    def make(self) -> Observation:
        """mkdir(2)."""
        return self._lockstep.run(ops.MakeDirectory(self._actor, self.root))[0]

    def of(self, actor: str) -> Instance:
        """The same, used by another process."""
        return Instance(self._lockstep, actor, self.prefix, self._timeout_s, name=self._name)

    def remove(self) -> Observation:
        """rmdir(2)."""
        return self._lockstep.run(ops.RemoveDirectory(self._actor, self.root))[0]


class EventDirectory:
    """The files of one event with which tracers say what is to become of its records."""

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
        """What `filter` shows."""
        return self._tracefs.read(self._path("filter")).text

    def trigger(self, text: str, flags: int = os.O_WRONLY | os.O_APPEND) -> Observation:
        """Write `trigger`, as ``echo … >>`` does; ``>`` would take histograms away."""
        return self._tracefs.write(self._path("trigger"), f"{text}\n", flags)

    @property
    def triggers(self) -> str:
        """The triggers that `trigger` shows, "" for none."""
        return self._tracefs.read(self._path("trigger"), View.TRIGGERS).text

    @property
    def available(self) -> str:
        """All that `trigger` shows, which is a list of what there could be where nothing is."""
        return self._tracefs.read(self._path("trigger")).text

    @property
    def hist(self) -> str:
        """What `hist` shows."""
        return self._tracefs.read(self._path("hist")).text

    @property
    def enabled(self) -> str:
        """What `enable` shows."""
        return self._tracefs.read(self._path("enable")).text
