"""Histograms of an event (the trigger `hist`), their map and their actions.

Keys are numbers or strings, values are numbers; named histograms and clocks are not modelled.
Source: trace_events_hist.c, functions named where a rule is applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.abi.profile import Profile
from conformance.model.errors import NotModelled
from conformance.model.state.histogram_values import (
    Expression,
    HistField,
    Key,
    Value,
    Variable,
    VariableReference,
    VariableTable,
    evaluate,
    number_of,
    refers,
    same_kind,
)
from conformance.model.state.synthetic_event import SyntheticEvent
from conformance.model.state.trace_instance import Instance
from conformance.model.text.filters import Filter

SAVE, TRACE = "save", "trace"
# HIST_CHAR_LENGTH: the longest bar of a value shown as .graph.
_BAR = 20


@dataclass(frozen=True, slots=True)
class SortKey:
    """A sort key: a key or value, and the direction."""

    part: HistField | VariableReference
    descending: bool

    @property
    def text(self) -> str:
        """The text in the definition."""
        return self.part.text + (".descending" if self.descending else "")


# A variable of the same histogram by name, one of another histogram, or a field.
Source = str | VariableReference | HistField


@dataclass(slots=True, eq=False)
class Action:
    """struct action_data: ``subject`` is the event or variable of the handler.

    ``parameters`` are as written.  ``tracked`` is the largest or last value by key, ``saved`` are
    the values saved with it.
    """

    handler: str
    subject: str
    name: str
    parameters: tuple[str, ...]
    event: SyntheticEvent | None = None
    sources: list[Source] = field(default_factory=list)
    tracked: dict[Key, int] = field(default_factory=dict)
    saved: dict[Key, list[Value]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """print_actions_spec()"""
        return f":{self.handler}({self.subject}).{self.name}({','.join(self.parameters)})"

    def perform(
        self,
        instances: Mapping[str, Instance],
        key: Key,
        record: bytes,
        own: Mapping[str, Value],
        read: Mapping[VariableReference, Value],
    ) -> None:
        """action_trace(), ontrack_action()."""
        if self.handler != "onmatch":
            value = number_of(own[self.subject[1:]]) % (1 << 64)
            before = self.tracked.setdefault(key, 0)
            if not (value > before if self.handler == "onmax" else value != before):
                return
            self.tracked[key] = value
        values = [_value_of(source, record, own, read) for source in self.sources]
        if self.name == SAVE:
            self.saved[key] = values
        else:
            assert self.event is not None
            self.event.record(instances, values)

    def shown(self, key: Key) -> str:
        """track_data_print()"""
        if self.handler == "onmatch":
            return ""
        label = "max" if self.handler == "onmax" else "changed"
        text = f"\n\t{label}: {self.tracked.get(key, 0):>10}"
        if self.name != SAVE:
            return text
        if key not in self.saved and any(_is_string(each) for each in self.sources):
            raise NotModelled("a saved string before the first save")
        saved = self.saved.get(key, [0] * len(self.parameters))
        for name, value in zip(self.parameters, saved, strict=True):
            if isinstance(value, bytes):
                text += f"  {name}: {value.decode('latin-1'):<32}"
            else:
                text += f"  {name}: {value % (1 << 64):>10}"
        return text

    def clear(self) -> None:
        """hist_clear()"""
        self.tracked.clear()
        self.saved.clear()


def _is_string(source: Source) -> bool:
    return isinstance(source, HistField) and source.is_string


def _value_of(
    source: Source, record: bytes, own: Mapping[str, Value], read: Mapping[VariableReference, Value]
) -> Value:
    if isinstance(source, HistField):
        return source.value(record)
    return read[source] if isinstance(source, VariableReference) else own[source]


@dataclass(slots=True, eq=False)
class Histogram:
    """struct hist_trigger_data and its map.

    ``entries`` are the sums by key; ``references`` are variables of other histograms.
    """

    profile: Profile
    keys: tuple[HistField, ...]
    values: tuple[Expression, ...]
    sort_keys: tuple[SortKey, ...]
    bits: int
    table: VariableTable = field(default_factory=VariableTable)
    actions: tuple[Action, ...] = ()
    references: list[VariableReference] = field(default_factory=list)
    entries: dict[Key, list[int]] = field(default_factory=dict)
    hits: int = 0
    drops: int = 0

    def is_listed(self, *, reading: bool) -> bool:
        """save_hist_vars(): whether the histogram is in the list of its instance.

        ``reading`` says whether variables that only its actions read count.
        """
        return bool(self.table.variables or (self.references and reading)) or any(
            map(refers, self.values)
        )

    def matches(self, other: Histogram) -> bool:
        """hist_trigger_match(), which ignores the size."""
        values = len(self.values) == len(other.values) and all(
            map(same_kind, self.values, other.values)
        )
        variables = len(self.table.variables) == len(other.table.variables) and all(
            map(Variable.matches, self.table.variables, other.table.variables)
        )
        actions = [each.text for each in self.actions] == [each.text for each in other.actions]
        same = (self.keys, self.sort_keys) == (other.keys, other.sort_keys)
        return values and variables and actions and same

    def definition(self, condition: Filter | None, *, paused: bool) -> str:
        """event_hist_trigger_print()"""
        keys, values, sort_keys = (
            ",".join(part.text for part in parts)
            for parts in (self.keys, self.values, self.sort_keys)
        )
        variables = ",".join(each.text for each in self.table.variables)
        variables = f":{variables}" if variables else ""
        text = f"hist:keys={keys}:vals={values}{variables}:sort={sort_keys}:size={1 << self.bits}"
        text += "".join(each.text for each in self.actions)
        text += f" if {condition.text}" if condition else ""
        return f"{text} [{'paused' if paused else 'active'}]\n"

    def add(self, instances: Mapping[str, Instance], record: bytes) -> None:
        """event_hist_trigger()"""
        key = tuple(part.key(record, self.profile) for part in self.keys)
        read = self._read(key)
        if read is None:
            return
        if key not in self.entries and len(self.entries) == 1 << self.bits:
            self.drops += 1
            return
        self.hits += 1
        sums = self.entries.setdefault(key, [0] * len(self.values))
        for index, part in enumerate(self.values):
            sums[index] += number_of(evaluate(part, record, read, self.profile))
        own = self.table.values.setdefault(key, {})
        for variable in self.table.variables:
            own[variable.name] = evaluate(variable.value, record, read, self.profile)
        for action in self.actions:
            action.perform(instances, key, record, own, read)

    def _read(self, key: Key) -> dict[VariableReference, Value] | None:
        """resolve_var_refs(): None if a variable has no value for the key."""
        read: dict[VariableReference, Value] = {}
        for reference in self.references:
            own = reference.table.values.get(key, {})
            if reference.name not in own:
                return None
            read[reference] = own[reference.name]
            if reference.consumed:
                del own[reference.name]
        return read

    def clear(self) -> None:
        """hist_clear()"""
        self.entries.clear()
        self.table.values.clear()
        for action in self.actions:
            action.clear()
        self.hits = self.drops = 0

    def shown(self, definition: str) -> str:
        """hist_trigger_show()"""
        lines = "".join(map(self._line, self._sorted()))
        return (
            f"# event histogram\n#\n# trigger info: {definition}#\n\n{lines}\n"
            f"Totals:\n    Hits: {self.hits}\n    Entries: {len(self.entries)}\n"
            f"    Dropped: {self.drops}\n"
        )

    def _sorted(self) -> list[Key]:
        """tracing_map_sort_entries().  Raises NotModelled if two entries rank equal."""
        found = list(self.entries)
        ranks = {key: [self._rank(order.part, key) for order in self.sort_keys] for key in found}
        if len({tuple(rank) for rank in ranks.values()}) < len(found):
            raise NotModelled("the order of entries with equal sort keys")
        for index, order in reversed(list(enumerate(self.sort_keys))):
            column = {key: rank[index] for key, rank in ranks.items()}
            found.sort(key=column.__getitem__, reverse=order.descending)
        return found

    def _rank(self, part: HistField | VariableReference, key: Key) -> Value:
        if part in self.values:
            return self.entries[key][self.values.index(part)]
        assert isinstance(part, HistField)
        return key[self.keys.index(part)]

    def _line(self, key: Key) -> str:
        pairs = zip(self.keys, key, strict=True)
        keys = ", ".join(part.shown(each, self.profile) for part, each in pairs)
        values = [
            f" {self._sum(part, index, sums)}"
            for index, (part, sums) in enumerate(zip(self.values, self.entries[key], strict=True))
            # Expressions are summed up and never shown.
            if isinstance(part, HistField | VariableReference)
        ]
        tracked = "".join(action.shown(key) for action in self.actions)
        return f"{{ {keys} }}{' '.join(values)}{tracked}\n"

    def _sum(self, part: HistField | VariableReference, index: int, value: int) -> str:
        """hist_trigger_print_val()"""
        column = [sums[index] for sums in self.entries.values()]
        modifier = part.modifier if isinstance(part, HistField) else ""
        match modifier:
            case "percent":
                hundredths = value * 10000 // sum(column) if sum(column) else 0
                return f"{part.name} (%): {hundredths // 100:>3}.{hundredths % 100:02}"
            case "graph":
                length = value * 10000 // max(column) * _BAR // 10000 if max(column) else 0
                return f"{part.name}: {'#' * length:<20}"
        return f"{part.name}: {value % (1 << 64):>10{'x' if modifier == 'hex' else ''}}"
