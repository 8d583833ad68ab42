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
# EVENT_CMD_FL_POST_TRIGGER: triggers that act after the record is committed.
_POST = ("traceoff", "stacktrace")
# EVENT_CMD_FL_NEEDS_REC: triggers that read the record.
_READING = ("hist", "eprobe")
NO_FILTER = "none"
# A user event by its serial, a kernel event as system:name.
EventKey = int | str


@dataclass(slots=True, eq=False)
class Trigger:
    """struct event_trigger_data; ``count`` is how often the trigger may still act, None without
    limit.

    ``target`` is the event that the trigger enables or disables.  An attached eprobe is a trigger
    too, one that `trigger` does not show.
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
        """Whether the trigger acts after the record is committed."""
        return self.kind in _POST

    @property
    def needs_record(self) -> bool:
        """Whether the trigger acts only once the record is there."""
        return self.filter is not None or self.is_post or self.kind in _READING

    def conflicts_with(self, other: Trigger) -> bool:
        """Whether both cannot be on one event (struct event_command.trigger_type)."""
        for family in (_ONOFF, ENABLING, HIST_ENABLING):
            if self.kind in family:
                return other.kind in family and other.target is self.target
        return self.kind == other.kind

    @property
    def text(self) -> str:
        """The line in `trigger`."""
        if self.histogram is not None:
            return self.histogram.definition(self.filter, paused=self.paused)
        condition = f" if {self.filter.text}" if self.filter else ""
        count = "unlimited" if self.count is None else f"count={self.count}"
        name = f"{self.kind}:{self.target_name}" if self.target_name else self.kind
        return f"{name}:{count}{condition}\n"


@dataclass(slots=True, eq=False)
class EventFile:
    """struct trace_event_file: an event as one instance has it.

    ``sm_ref`` counts the users of soft mode.  ``filter_text`` is what `filter` shows, which may be
    the error of a refused filter.  ``triggers`` are in the order in which they act.
    """

    event_key: EventKey
    instance: str = TOP
    sm_ref: int = 0
    soft_disabled: bool = False
    filter: Filter | None = None
    filter_text: str = NO_FILTER
    triggers: list[Trigger] = field(default_factory=list)

    @property
    def is_used(self) -> bool:
        """Whether the event has a filter, the error of one, or a trigger."""
        return self.filter_text != NO_FILTER or bool(self.triggers)

    @property
    def conditional(self) -> bool:
        """update_cond_flag(): whether a trigger needs the record or acts after it."""
        return any(trigger.needs_record for trigger in self.triggers)
