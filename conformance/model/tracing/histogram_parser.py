"""Parser of the keys, values and variables of a histogram.

Source: trace_events_hist.c:parse_hist_trigger_attrs, create_hist_data, parse_expr, parse_field.
"""

from __future__ import annotations

import re
from typing import NoReturn

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.event_file import EventFile
from conformance.model.state.events import Event
from conformance.model.state.histogram_values import (
    HITCOUNT,
    Constant,
    Expression,
    HistField,
    Operation,
    Variable,
    VariableReference,
    VariableTable,
    calculate_by_constant,
    refers,
)
from conformance.model.state.world import World
from conformance.model.text import filters
from conformance.model.text.numbers import number_in

_MODIFIERS = ("hex", "sym", "log2")
# Modifiers for values only, and for keys only.
_OF_VALUES = ("percent", "graph")
_OF_KEYS = ("log2", "sym")
# Modifiers that are not modelled; of some only the beginning is compared.
_NOT_MODELLED = re.compile(r"syscall|usecs|stacktrace.*|(percent|graph).+")
_MAX_SUBEXPRESSIONS = 3
_MAX_VARIABLES = 16
_UNKNOWN = ("common_", "cpu", "CPU", "stacktrace", "STACKTRACE", "comm", "COMM")
_COMMAND = "  Command: "
_OPERATORS = re.compile(r"[-+*/]")


class Parser:
    """Parser of one command ``text`` for an event in an instance.

    ``references`` are the variables of other histograms, in the order in which they are found.
    """

    def __init__(self, world: World, event: Event, file: EventFile, text: str) -> None:
        self._world = world
        self._event = event
        self._file = file
        self._command = f"hist:{text}"
        self._defined: dict[str, str] = {}
        self._assignments: list[tuple[str, str]] = []
        self._subexpressions = 0
        self.references: list[VariableReference] = []

    def refuse(self, message: str, near: str = "", errno: str = "EINVAL") -> NoReturn:
        """Add to error_log and raise the error."""
        self.log(message, near)
        raise Errno(errno)

    def log(self, message: str, near: str = "") -> None:
        """hist_err(): the caret points at the first occurrence of ``near`` in the command."""
        indent = " " * (len(_COMMAND) + max(self._command.find(near), 0))
        where = f"hist:{self._event.system}:{self._event.tracepoint}"
        self._world.instances[self._file.instance].error_log.append(
            f"{where}: error: {message}\n{_COMMAND}{self._command}\n{indent}^\n"
        )

    # Variables

    def check_number(self, assignments: list[str]) -> None:
        """parse_assignment(): the limit of variables."""
        if len(assignments) > _MAX_VARIABLES:
            self.refuse("Too many variables defined", assignments[-1])

    def define(self, assignments: list[str]) -> None:
        """parse_var_defs()"""
        found: list[tuple[str, str]] = []
        for assignment in assignments:
            for each in assignment.split(",")[:_MAX_VARIABLES]:
                name, sign, text = each.partition("=")
                if not sign:
                    self.refuse("Malformed assignment", name)
                if len(found) == _MAX_VARIABLES:
                    self.refuse("Too many variables defined", name)
                found.append((name, text))
        self._assignments = found
        self._defined = dict(reversed(found))

    def variables(self, *, removes: bool, updates: bool) -> tuple[Variable, ...]:
        """create_var_fields()

        ``updates`` says that the command may be about a histogram that exists with its variables.
        """
        found: list[Variable] = []
        for name, text in self._assignments:
            taken = any(each.name == name for each in found)
            if name in _variables_of(self._file) and not taken:
                taken = not (updates and self._world.profile.fixed("hist-vars-pause"))
            if taken and not removes:
                self.refuse("Variable already defined", name)
            self._subexpressions = 0
            value = self._expression(text, shown=())
            self._check_modifier(value, text, ("log2",))
            found.append(Variable(name, value))
            first = text if text.startswith("-") else _OPERATORS.split(text)[0]
            if first != text and not self._world.profile.fixed("hist-var-expression-cut"):
                # parse_expr() writes a NUL over the first operator of the text.
                self._defined[name] = first
        return tuple(found)

    def check_new(self, variables: tuple[Variable, ...]) -> None:
        """Refuse the variables of a new histogram that exist already."""
        for each in variables:
            if each.name in _variables_of(self._file):
                self.refuse("Variable already defined", each.name)

    # Values and keys

    def value(self, text: str) -> Expression:
        """create_val_field()"""
        self._subexpressions = 0
        known = self._world.profile.has("percent_and_graph")
        value = self._expression(text, shown=_OF_VALUES if known else ())
        kept = self._world.profile.has("percent_and_graph_kept")
        self._check_modifier(value, text, _OF_KEYS if kept else (*_OF_KEYS, *_OF_VALUES))
        return value

    def _check_modifier(self, value: Expression, text: str, refused: tuple[str, ...]) -> None:
        """__create_val_field(): modifiers that only keys may have."""
        if (
            self._world.profile.has("value_modifiers_refused")
            and isinstance(value, HistField)
            and (value.buckets or value.modifier in refused)
        ):
            self.refuse("Invalid field modifier", text)

    def key(self, text: str) -> HistField:
        """create_key_field()"""
        self._subexpressions = 0
        key = self._expression(text, shown=())
        if refers(key):
            self.refuse("Using variable references in keys not supported", text)
        if not isinstance(key, HistField):
            raise NotModelled(f"the key {text!r}")
        return key

    # Expressions

    def _expression(self, text: str, *, shown: tuple[str, ...]) -> Expression:
        """parse_expr(); ``shown`` are the modifiers for values."""
        if self._subexpressions > _MAX_SUBEXPRESSIONS:
            self.refuse("Too many subexpressions (3 max)", text)
        at = _root(text)
        if at < 0:
            return self._atom(text, shown)
        self._subexpressions += 1
        if at == 0 and text[0] == "-":
            return self._negative(text)
        parts = text[:at], text[at + 1 :]
        if not all(parts):
            raise Errno("EINVAL")
        left, right = (self._operand(part) for part in parts)
        return self._combined(text[at], left, right, parts[1])

    def _operand(self, text: str) -> Expression:
        operand = self._expression(text, shown=())
        if isinstance(operand, HistField) and operand.is_string:
            self.refuse("String type can not be an operand in expression", text)
        return operand

    def _negative(self, text: str) -> Expression:
        """parse_unary(): a minus before a parenthesis."""
        if self._subexpressions > _MAX_SUBEXPRESSIONS:
            self.refuse("Too many subexpressions (3 max)", text)
        if "(" not in text or ")" not in text:
            raise Errno("EINVAL")
        # The character after the minus is taken for the parenthesis.
        inner, _, behind = text[2:].rpartition(")")
        if behind:
            self.refuse("Unary minus not supported in sub-expressions", text[2:])
        operand = self._operand(inner)
        return Operation("-", operand, None)

    def _combined(self, sign: str, left: Expression, right: Expression, near: str) -> Expression:
        for each in (left, right):
            if isinstance(each, VariableReference):
                each.consumed = True
                if isinstance(each.table.find(each.name).value, Constant):
                    raise NotModelled("an expression with a variable that is a constant")
        if sign == "/" and right == Constant(0):
            self.refuse("Division by zero", near, "EDOM")
        if isinstance(left, Constant) and isinstance(right, Constant):
            profile = self._world.profile
            return Constant(calculate_by_constant(sign, left.number, right.number, profile))
        return Operation(sign, left, right)

    def _atom(self, text: str, shown: tuple[str, ...]) -> Expression:
        """parse_atom()"""
        if text[:1].isdigit():
            number = number_in(text)
            if number is None:
                self.refuse("Expecting numeric literal", text)
            return Constant(number)
        event_name, name = "", text
        if text.count(".") > 1:
            system, event, name = text.split(".", 2)
            event_name = f"{system}.{event}"
        if not name.startswith("$") or len(name) < 2:
            return self._field(name, shown)
        if not event_name or event_name == f"{self._event.system}.{self._event.tracepoint}":
            local = self._defined.get(name[1:])
            if local is not None and _root(local) < 0 and not local.startswith("$"):
                return self._field(local, shown)
        found = self.find(event_name, name[1:])
        if found is None:
            self.log("Couldn't find variable", name[1:])
            return self._field(name, shown)
        return self.refer(found, name[1:], event_name)

    def refer(self, table: VariableTable, name: str, event_name: str = "") -> VariableReference:
        """create_var_ref(): one reference per variable."""
        for each in self.references:
            if each.table is table and each.name == name:
                return each
        self.references.append(VariableReference(table, name, event_name))
        return self.references[-1]

    def field(self, name: str) -> HistField:
        """create_field_var(): a field of the event itself."""
        if name.startswith("$") or "." in name:
            raise NotModelled(f"the parameter {name}")
        return self._field(name, ())

    def find(self, event_name: str, name: str) -> VariableTable | None:
        """find_event_var()"""
        if event_name:
            system, _, event = event_name.partition(".")
            try:
                file = self._world.table.tracepoint(system, event).file_in(self._file.instance)
            except Errno:
                return None
            return _variables_of(file).get(name)
        files = [each.files.get(self._file.instance) for each in self._world.table.events]
        owners = [
            _variables_of(file)[name] for file in files if file and name in _variables_of(file)
        ]
        if len(owners) > 1:
            self.log(
                "Variable name not unique, need to use fully qualified name (subsys.event.var)"
                " for variable",
                name,
            )
            return None
        return owners[0] if owners else None

    def _field(self, text: str, shown: tuple[str, ...]) -> HistField:
        """parse_field(), create_hist_field()."""
        name, dot, modifier = text.partition(".")
        if name.startswith(_UNKNOWN):
            raise NotModelled(f"{text!r} in a histogram")
        buckets = 0
        if modifier.startswith(("buckets=", "bucket=")):
            size = modifier.partition("=")[2]
            buckets = number_in(size) or 0
            if buckets <= 0:
                self.refuse("Invalid field modifier", size)
            modifier = ""
        elif _NOT_MODELLED.fullmatch(modifier):
            raise NotModelled(f"the modifier {modifier}")
        elif dot and modifier not in (*_MODIFIERS, *shown):
            self.refuse("Invalid field modifier", modifier)
        if name == HITCOUNT:
            raise NotModelled("hitcount as a variable")
        found = filters.find_field(self._event.fields, name)
        if found is None:
            self.refuse("Couldn't find field", name)
        if filters.is_string(found):
            if not self._world.profile.has("remote_enable") or modifier or buckets:
                raise NotModelled("a string with a modifier, or of a release before 6.4")
        elif found.size not in filters.INTEGER_SIZES:
            raise NotModelled(f"a field of {found.size} bytes in a histogram")
        return HistField(found, modifier, buckets)


def _root(text: str) -> int:
    """contains_operator(): the position of the operator applied last, -1 without one."""
    minus, plus = text.rfind("-"), text.rfind("+")
    if minus == 0:
        return 0
    if minus > 0 or plus >= 0:
        return max(minus, plus)
    return max(text.rfind("/"), text.rfind("*"))


def _variables_of(file: EventFile) -> dict[str, VariableTable]:
    """find_file_var(): the variables of an event's histograms by name."""
    return {
        variable.name: trigger.histogram.table
        for trigger in reversed(file.triggers)
        if trigger.histogram is not None
        for variable in trigger.histogram.table.variables
    }
