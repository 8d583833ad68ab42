"""Parts of a histogram: fields, constants, variables, and expressions of them.

Source: trace_events_hist.c:hist_fn_call, hist_field_name, expr_str, hist_trigger_print_key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.abi.profile import Profile
from conformance.model.errors import NotModelled
from conformance.model.text import filters
from conformance.model.text.definition import Field

# The first value of every histogram.
HITCOUNT = "hitcount"
_KEY_UNIT = 8
_DYNAMIC_KEY = 256
# Below this address no kernel has a symbol.
_NO_SYMBOL = 4096
_MASK = (1 << 64) - 1
# HIST_DIV_SHIFT: smaller numbers are divided by a constant with a multiplication and a shift.
_SHIFT = 20

Value = int | bytes
Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class HistField:
    """A field and its modifier; ``field`` None is the hitcount."""

    field: Field | None
    modifier: str = ""
    buckets: int = 0

    @property
    def name(self) -> str:
        """hist_field_name()"""
        return HITCOUNT if self.field is None else self.field.name

    @property
    def text(self) -> str:
        """hist_field_print()"""
        if self.buckets:
            return f"{self.name}.buckets={self.buckets}"
        return f"{self.name}.{self.modifier}" if self.modifier else self.name

    @property
    def is_string(self) -> bool:
        """HIST_FIELD_FL_STRING"""
        return self.field is not None and filters.is_string(self.field)

    def key(self, record: bytes, profile: Profile) -> Value:
        """add_to_key()"""
        value = self.value(record)
        if self.field is None or not self.is_string or self.field.is_location:
            return value
        whole = filters.string_of(self.field, record).partition(b"\0")[0]
        return value if value == whole or not profile.fixed("hist-string-key-cut") else whole

    def value(self, record: bytes) -> Value:
        """The value that a record has; text is cut to what a key holds with a NUL."""
        if self.field is None:
            return 1
        raw = record[self.field.offset : self.field.offset + self.field.size]
        if filters.is_string(self.field):
            return self._string(filters.string_of(self.field, record))
        value = int.from_bytes(raw, "little", signed=self.field.signed)
        if self.modifier == "log2":
            if value <= 0:
                raise NotModelled("log2 of a number that is not positive")
            return (value - 1).bit_length()
        return value // self.buckets * self.buckets if self.buckets else value

    def _string(self, raw: bytes) -> bytes:
        assert self.field is not None
        size = _DYNAMIC_KEY if self.field.is_location else -(-self.field.size // _KEY_UNIT) * 8
        return raw[: size - 1].partition(b"\0")[0]

    def shown(self, value: Value, profile: Profile) -> str:
        """hist_trigger_print_key()"""
        if isinstance(value, bytes):
            return f"{self.name}: {value.decode('latin-1'):<50}"
        plain = not (self.modifier or self.buckets)
        if value < 0 and plain and profile.fixed("hist-signed"):
            return f"{self.name}: {value:>10}"
        value &= _MASK
        if self.buckets:
            return f"{self.name}: ~ {value}-{value + self.buckets - 1}"
        match self.modifier:
            case "hex":
                return f"{self.name}: {value:x}"
            case "log2":
                return f"{self.name}: ~ 2^{value:<2}"
            case "sym":
                if value >= _NO_SYMBOL:
                    raise NotModelled("a value that may be printed as a symbol")
                return f"{self.name}: [{value:x}] {f'{value:#x}':<45}"
        return f"{self.name}: {value:>10}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, or an expression of numbers."""

    number: int

    @property
    def text(self) -> str:
        """hist_field_print()"""
        return str(self.number)


@dataclass(slots=True, eq=False)
class VariableReference:
    """create_var_ref(): a variable that another histogram reads.

    ``consumed`` means that a read uses up the value; ``event_name`` is the event in a qualified
    name.
    """

    table: VariableTable
    name: str
    event_name: str = ""
    consumed: bool = False

    @property
    def text(self) -> str:
        """hist_field_print()"""
        if self.event_name:
            raise NotModelled("a qualified variable in a definition")
        return f"${self.name}"


@dataclass(frozen=True, slots=True)
class Operation:
    """A binary operator with its operands, or a unary minus."""

    operator: str
    left: Expression
    right: Expression | None

    @property
    def text(self) -> str:
        """expr_str()"""
        if self.right is None:
            return f"-({self.left.text})"
        return f"{self.left.text}{self.operator}{self.right.text}"


Expression = HistField | Constant | VariableReference | Operation


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that is kept by key, under a name."""

    name: str
    value: Expression

    @property
    def text(self) -> str:
        """hist_field_print()"""
        return f"{self.name}={self.value.text}"

    def matches(self, other: Variable) -> bool:
        """hist_trigger_match(): compares nothing but the kind, except for fields."""
        return self.name == other.name and same_kind(self.value, other.value)


@dataclass(slots=True, eq=False)
class VariableTable:
    """The variables that one histogram defines, and their values by key."""

    variables: tuple[Variable, ...] = ()
    values: dict[Key, dict[str, Value]] = field(default_factory=dict)

    def find(self, name: str) -> Variable:
        """The definition of a variable."""
        return next(each for each in self.variables if each.name == name)


def refers(part: Expression | None) -> bool:
    """field_has_hist_vars(): whether an expression reads a variable of a histogram."""
    if isinstance(part, Operation):
        return refers(part.left) or refers(part.right)
    return isinstance(part, VariableReference)


def same_kind(one: Expression, other: Expression) -> bool:
    """hist_trigger_match(): fields must be equal, other expressions of the same kind."""
    if isinstance(one, HistField) or isinstance(other, HistField):
        return one == other
    return type(one) is type(other)


def evaluate(
    part: Expression, record: bytes, read: Mapping[VariableReference, Value], profile: Profile
) -> Value:
    """hist_fn_call(): 64 bits; ``read`` has the values of the references."""
    match part:
        case HistField():
            return part.value(record)
        case Constant(number=number):
            return number
        case VariableReference():
            return read[part]
        case Operation(operator=operator, left=left, right=right):
            first = number_of(evaluate(left, record, read, profile)) & _MASK
            if right is None:
                return -first & _MASK
            second = number_of(evaluate(right, record, read, profile)) & _MASK
            if isinstance(right, Constant):
                return calculate_by_constant(operator, first, second, profile)
            return calculate(operator, first, second)


def calculate_by_constant(operator: str, first: int, second: int, profile: Profile) -> int:
    """hist_field_get_div_fn(): division by some constants has a function of its own."""
    exact = calculate(operator, first, second)
    power_of_two = second & (second - 1) == 0
    if operator != "/" or power_of_two or second > 1 << _SHIFT or first >= 1 << _SHIFT:
        return exact
    # div_by_mult_and_shift() rounds up what leaves a remainder.
    rounded = (first * ((1 << _SHIFT) // second) + (1 << _SHIFT) - 1) >> _SHIFT
    return exact if rounded == exact or profile.fixed("hist-division") else rounded


def calculate(operator: str, first: int, second: int) -> int:
    """hist_field_plus() and its like."""
    match operator:
        case "+":
            return (first + second) & _MASK
        case "-":
            return (first - second) & _MASK
        case "*":
            return (first * second) & _MASK
    return first // second if second else _MASK


def number_of(value: Value) -> int:
    """A value that has to be a number.  Raises NotModelled for a string."""
    if isinstance(value, bytes):
        raise NotModelled("a variable that is a string, as a number")
    return value
