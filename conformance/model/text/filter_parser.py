"""Parser of filters, with the kernel's errors and error positions.

Source: trace_events_filter.c:calc_stack, predicate_parse, parse_pred.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.abi.profile import Profile
from conformance.model.errors import Errno, NotModelled
from conformance.model.text import cpu_sets
from conformance.model.text.definition import SPACES, Field
from conformance.model.text.filters import (
    INTEGER_SIZES,
    Filter,
    Group,
    Term,
    find_field,
    find_own_field,
    is_string,
)
from conformance.model.text.numbers import number_in

# Operators; one that is a prefix of another comes later.
_OPERATORS = ("~", "!=", "==", "<=", "<", ">=", ">", "&")
_MAX_NUMBER = 24
_MAX_STRING = 256
# A field holds the address of a function if it is a long.
_FUNCTION = ".function"
_ADDRESS = 8
# Names and addresses without a function in any kernel.
_NO_FUNCTIONS = ("", "0", "1", "0x1000", "no_such_function", "no_such_function)", "'vfs_read'")
# trace_define_generic_fields(): the name of the task.
_TASK_NAMES = ("COMM", "comm")
_GENERIC = ("CPU", "cpu", "common_cpu", "stacktrace", "STACKTRACE")
# No task of a case has this name.
_UNUSED_NAME = "nobody"
_COMMAND = "  Command: "


class FilterError(Errno):
    """A refused filter; ``message`` is the kernel's text, "" without one.

    ``position`` counts characters from the start of the filter.
    """

    def __init__(self, name: str, message: str = "", position: int = 0) -> None:
        super().__init__(name)
        self.message = message
        self.position = position

    def logged(self, text: str) -> str:
        """The entry in error_log, without the time (tracing_err_log_seq_show)."""
        message, position = (self.message, self.position) if self.message else ("Error", 0)
        place = " " * (len(_COMMAND) + position) + "^"
        return f"event filter parse error: error: {message}\n{_COMMAND}{text}\n{place}\n"

    def shown(self, text: str) -> str:
        """The new text of `filter`, without a final newline (append_filter_err)."""
        if not self.message:
            return f"{text}\nError: (0)\n"
        position = min(self.position, len(text))
        place = "^".rjust(position + 1 if position else 0)
        return f"{text}\n{place}\nparse_error: {self.message}\n"


def parse(text: str, fields: Sequence[Field], profile: Profile) -> Filter:
    """create_filter().  Raises FilterError and NotModelled."""
    try:
        terms = _count(text)
        if not terms:
            raise FilterError("EINVAL")
        return Filter(text, _Parser(text, fields, profile).expression())
    except FilterError as error:
        if error.name != "EINVAL" and profile.fixed("filter-errno"):
            raise FilterError("EINVAL", error.message, error.position) from None
        raise


def _count(text: str) -> int:
    """calc_stack(): the number of terms.

    Raises FilterError for unbalanced quotes or parentheses; calc_stack() returns -1, -2 and -3,
    which are taken for error numbers.
    """
    terms, is_term, quote, last_quote = 0, False, "", 0
    opened: list[int] = []
    for position, character in enumerate(text):
        if character in SPACES:
            continue
        if quote:
            quote = "" if character == quote else quote
            continue
        if character in "'\"":
            quote, last_quote = character, position
        elif character in "&|" and text[position + 1 : position + 2] == character:
            is_term = False
            continue
        elif character == "(":
            is_term = False
            opened.append(position)
            continue
        elif character == ")":
            is_term = False
            if not opened:
                raise FilterError("EPERM", "Too few '('", position)
            opened.pop()
            continue
        if not is_term:
            terms += 1
            is_term = True
    if quote:
        raise FilterError("ESRCH", "Missing matching quote", last_quote)
    if opened:
        raise FilterError("ENOENT", "Too many '('", opened[-1])
    return terms


class _Parser:
    """predicate_parse() and parse_pred()."""

    def __init__(self, text: str, fields: Sequence[Field], profile: Profile) -> None:
        self._text = text
        self._fields = fields
        self._profile = profile
        self._at = 0

    def expression(self) -> Term | Group:
        """The whole filter."""
        found = self._any()
        if self._at < len(self._text):
            raise NotModelled(f"trailing text in the filter {self._text!r}")
        return found

    def _any(self) -> Term | Group:
        parts = [self._all()]
        while self._take("||"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Group("||", tuple(parts))

    def _all(self) -> Term | Group:
        parts = [self._one()]
        while self._take("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Group("&&", tuple(parts))

    def _one(self) -> Term | Group:
        self._skip_spaces()
        if self._peek() == "(":
            self._at += 1
            inner = self._any()
            # calc_stack() has checked the parentheses.
            self._at += 1
            return inner
        if self._peek() == "!" and self._text[self._at + 1 : self._at + 2] not in ("=", "~"):
            self._at += 1
            return Group("!", (self._one(),))
        if self._at >= len(self._text):
            raise NotModelled("a filter that ends before a term")
        return self._term()

    def _take(self, word: str) -> bool:
        """Whether a given operator between terms comes next.  Raises FilterError for other text."""
        self._skip_spaces()
        if self._text.startswith(word, self._at):
            self._at += 2
            return True
        following = self._peek()
        if following in ("", ")") or self._text.startswith(("&&", "||"), self._at):
            return False
        raise FilterError("EPERM", "Too many terms in predicate expression", self._at)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip_spaces(self) -> None:
        while self._peek() and self._peek() in SPACES:
            self._at += 1

    def _term(self) -> Term:
        name = self._word()
        if not name:
            raise FilterError("EPERM")
        field = find_own_field(self._fields, name)
        if field is None and name not in _TASK_NAMES:
            if name in _GENERIC:
                raise NotModelled(f"a filter on {name}")
            field = find_field(self._fields, name)
            if field is None:
                raise self._error("Field not found")
        if self._text.startswith(".ustring", self._at):
            raise NotModelled("a filter on addresses")
        has_functions = self._profile.has("functions_in_filters")
        is_function = has_functions and self._text.startswith(_FUNCTION, self._at)
        self._at += len(_FUNCTION) * is_function
        self._skip_spaces()
        operator = next((op for op in _OPERATORS if self._text.startswith(op, self._at)), "")
        if not operator:
            raise self._error("Invalid operator")
        self._at += len(operator)
        self._skip_spaces()
        if is_function:
            raise self._function(field, operator)
        if self._profile.has("processor_sets") and self._text.startswith(cpu_sets.WORD, self._at):
            return self._compared(field, operator, self._processors(field, operator))
        if self._peek() in ("'", '"'):
            text = self._string(field, operator)
            if field is None and text != _UNUSED_NAME:
                raise NotModelled("a filter on the name of a task")
            return Term(field, operator, text.encode("latin-1"), self._profile)
        if self._peek() and self._peek() in "0123456789-":
            return self._compared(field, operator, self._number(field, operator))
        raise self._error("Invalid value (did you forget quotes)?")

    def _compared(self, field: Field | None, operator: str, constant: int | frozenset[int]) -> Term:
        """A comparison of numbers: select_comparison_fn() has functions for some sizes only."""
        odd = field is not None and field.size not in INTEGER_SIZES
        if odd and self._profile.fixed("filter-odd-size"):
            raise self._error("Illegal operation for field type")
        return Term(field, operator, constant, self._profile)

    def _error(self, message: str, position: int | None = None) -> FilterError:
        """parse_error() at the present position, which the kernel counts one too far."""
        place = self._at if position is None else position
        return FilterError("EINVAL", message, place + 1)

    def _word(self) -> str:
        start = self._at
        while re.match(r"\w", self._peek(), re.ASCII):
            self._at += 1
        return self._text[start : self._at]

    def _string(self, field: Field | None, operator: str) -> str:
        if operator not in ("==", "!=", "~"):
            raise self._error("Illegal operation for field type")
        if field is not None and not self._holds_text(field):
            raise self._error("Expecting numeric field")
        quote = self._peek()
        end = self._text.index(quote, self._at + 1)
        text = self._text[self._at + 1 : end]
        if len(text) >= _MAX_STRING:
            self._at = end
            raise self._error("Operand too long")
        self._at = end + 1
        return text

    def _holds_text(self, field: Field) -> bool:
        # Before 6.4 no field of a user event is a string.
        return is_string(field) and self._profile.has("remote_enable")

    def _function(self, field: Field | None, operator: str) -> FilterError:
        """The error of a filter on a function.  Raises NotModelled for a valid one."""
        if field is None or field.size != _ADDRESS:
            return self._error("Illegal operation for field type")
        if operator not in ("==", "!="):
            return self._error("Invalid operator")
        start, number = self._at, self._peek()[:1].isdigit()
        while (
            self._peek() and self._peek() not in SPACES and (self._peek().isalnum() or not number)
        ):
            self._at += 1
        text = self._text[start : self._at]
        if number and len(text) >= _MAX_NUMBER:
            return self._error("Operand too long")
        if number and number_in(text) is None:
            return self._error("Invalid value (did you forget quotes)?")
        if text not in _NO_FUNCTIONS:
            raise NotModelled(f"the function {text}")
        return self._error("Function not found")

    def _processors(self, field: Field | None, operator: str) -> frozenset[int]:
        if field is None or self._holds_text(field) or operator not in cpu_sets.OPERATORS:
            raise self._error("Illegal operation for field type")
        self._at += len(cpu_sets.WORD) + 1
        if self._text[self._at - 1 : self._at] != "{":
            raise self._error("Missing '{'")
        end = self._text.find("}", self._at)
        if end < 0:
            raise self._error("Missing '}'", len(self._text))
        found = cpu_sets.parse(self._text[self._at : end]) if end > self._at else None
        if found is None:
            raise self._error("Invalid cpulist", end)
        self._at = end + 1
        return found

    def _number(self, field: Field | None, operator: str) -> int:
        start = self._at
        if field is None or self._holds_text(field):
            raise self._error("Expecting string field")
        if operator == "~":
            raise self._error("Illegal operation for field type")
        if self._peek() == "-":
            self._at += 1
        while re.match(r"[^\W_]", self._peek(), re.ASCII):
            self._at += 1
        text = self._text[start : self._at]
        if len(text) >= _MAX_NUMBER:
            raise self._error("Operand too long")
        value = number_in(text)
        low, high = (-(1 << 63), 1 << 63) if field.signed else (0, 1 << 64)
        if value is None or not low <= value < high or (text[0] == "-" and not field.signed):
            raise self._error("Illegal integer value", start)
        return value
