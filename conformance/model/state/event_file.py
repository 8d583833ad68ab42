"""An event as one instance has it: filter, triggers, soft mode.

Source: trace_events.c:__ftrace_event_enable_disable; trace_events_trigger.c.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.model.state.histogram import Histogram
from conformance.model.state.probes import Eprobe
from conformance.model.state.trace_instance import TOP
from conformance.model.text.filters import Filter

_ONOFF = ("traceon", "traceoff")
ENABLING = ("enable_event", "disable_event")
HIST_ENABLING = ("enable_hist", "disable_hist")
# EVENT_CMD_FL_POST_TRIGGER: what happens behind the record.
_POST = ("traceoff", "stacktrace")
# EVENT_CMD_FL_NEEDS_REC: what looks at the record.
_READING = ("hist", "eprobe")
NO_FILTER = "none"
# A user event by its serial, an event of the kernel's own as system:name.
Place = int | str


@dataclass(slots=True, eq=False)
class Trigger:
    """One trigger.  ``count`` is how often it is still to act, None for ever.

    ``target`` is the event it enables or disables; a probe on the event is a trigger too, one
    that `trigger` does not show.
    """

    kind: str
    count: int | None = None
    filter: Filter | None = None
    target: EventFile | None = None
    target_name: str = ""
    histogram: Histogram | None = None
    eprobe: Eprobe | None = None
    paused: bool = False

    @property
    def is_post(self) -> bool:
        """Whether it acts behind the record."""
        return self.kind in _POST

    @property
    def is_late(self) -> bool:
        """Whether it cannot act before the record is there."""
        return self.filter is not None or self.is_post or self.kind in _READING

    def is_like(self, other: Trigger) -> bool:
        """Whether an event has room for one of the two only (struct event_command.trigger_type)."""
        for family in (_ONOFF, ENABLING, HIST_ENABLING):
            if self.kind in family:
                return other.kind in family and other.target is self.target
        return self.kind == other.kind

    @property
    def text(self) -> str:
        """Its line in `trigger`."""
        if self.histogram is not None:
            return self.histogram.definition(self.filter, paused=self.paused)
        condition = f" if {self.filter.text}" if self.filter else ""
        count = "unlimited" if self.count is None else f"count={self.count}"
        name = f"{self.kind}:{self.target_name}" if self.target_name else self.kind
        return f"{name}:{count}{condition}\n"


@dataclass(slots=True, eq=False)
class EventFile:
    """struct trace_event_file: an event as one instance has it.

    ``soft`` counts who wants the event listened to unseen, ``shown`` is what the file `filter`
    shows, which may be what was wrong with the last one; ``triggers`` are in the order in which
    they are asked, the newest first.
    """

    place: Place
    instance: str = TOP
    soft: int = 0
    soft_disabled: bool = False
    filter: Filter | None = None
    shown: str = NO_FILTER
    triggers: list[Trigger] = field(default_factory=list)

    @property
    def is_used(self) -> bool:
        """Whether anything hangs on the event, be it what is wrong with a filter."""
        return self.shown != NO_FILTER or bool(self.triggers)

    @property
    def conditional(self) -> bool:
        """update_cond_flag(): whether triggers have to see the record, or come behind it."""
        return any(trigger.is_late for trigger in self.triggers)
