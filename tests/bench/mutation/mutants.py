"""Mutants of a C source, all in one text: a variable chooses the one that acts.

Every place that a mutant changes also notes that it was reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_c
from tree_sitter import Language, Node, Parser

PARAMETERS = "/sys/module/trace_events_user/parameters"
"""Where the kernel shows the parameters: mutant, and which were reached since it was chosen."""

_RELATIONAL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_ARITHMETIC = {"+": "-", "-": "+", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
_ERRNO = {"EINVAL": "EFAULT", "EFAULT": "EINVAL", "ENOENT": "EINVAL", "ENOMEM": "EINVAL"}
_ERRNO |= {"EBUSY": "EINVAL", "E2BIG": "EINVAL", "EPERM": "EACCES", "EBADF": "EINVAL"}
# Calls without effect on programs, and contexts in which no expression can be chosen at run time.
_SILENT = re.compile(
    r"(?:lockdep_\w+|WARN\w*|pr_\w+|might_\w+|BUILD_BUG\w*|va_\w+|list_for_\w+|[A-Z_]+)$"
)
_CONSTANT = {"sizeof_expression", "offsetof_expression", "initializer_list"}
_CONSTANT_PARTS = {"case_statement": ("value",), "preproc_if": ("condition",)}
_HEAD = """\
#include <linux/moduleparam.h>
static int uevt_mutant;
static unsigned char uevt_reached[{count}];
static unsigned int uevt_count = {count};
static int uevt_choose(const char *text, const struct kernel_param *parameter)
{{
	memset(uevt_reached, 0, sizeof(uevt_reached));
	return param_set_int(text, parameter);
}}
static const struct kernel_param_ops uevt_choice = {{
	.set = uevt_choose,
	.get = param_get_int,
}};
module_param_cb(mutant, &uevt_choice, &uevt_mutant, 0644);
module_param_array_named(reached, uevt_reached, byte, &uevt_count, 0444);
static __always_inline bool uevt_is(int number)
{{
	uevt_reached[number] = 1;
	return unlikely(READ_ONCE(uevt_mutant) == number);
}}

"""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place: its number, line from 1, function, operator, and both texts."""

    number: int
    line: int
    function: str
    operator: str
    before: str
    after: str

    def __str__(self) -> str:
        change = f"{self.before} -> {self.after}" if self.after else self.before
        return f"{self.number} {self.function}:{self.line} {self.operator}: {change}"


class Instrumented:
    """A source with all of its mutants.  ``without`` are lines that are left alone."""

    def __init__(self, source: str, without: frozenset[int] = frozenset()) -> None:
        self._source = source.encode()
        self._without = without
        self.mutants: list[Mutant] = []
        self._function = ""
        root = Parser(Language(tree_sitter_c.language())).parse(self._source).root_node
        body = self._text(root)
        # After the includes of the source.
        place = body.index("\n", body.rindex("#include ")) + 1
        head = _HEAD.format(count=len(self.mutants) + 1)
        self.text = body[:place] + head + body[place:]

    def _raw(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()

    def _text(self, node: Node) -> str:
        """The text of a node with the mutants inside it."""
        if node.type.startswith("preproc_") and node.type not in ("preproc_if", "preproc_ifdef"):
            return self._raw(node)
        if node.type == "function_definition":
            self._function = self._name(node)
            declared = self._source[node.start_byte : _part(node, "body").start_byte]
            # What runs at boot runs before a mutant is chosen.
            if b"__init" in declared:
                return self._raw(node)
        if node.type in _CONSTANT:
            return self._raw(node)
        # Of a case label, and of #if.
        constant = [node.child_by_field_name(name) for name in _CONSTANT_PARTS.get(node.type, ())]
        text, at = [], node.start_byte
        for child in node.children:
            text.append(self._source[at : child.start_byte].decode())
            text.append(self._raw(child) if child in constant else self._text(child))
            at = child.end_byte
        text.append(self._source[at : node.end_byte].decode())
        return self._mutated(node, "".join(text))

    def _name(self, function: Node) -> str:
        found = re.search(r"(\w+)\s*\(", self._raw(_part(function, "declarator")))
        return found[1] if found else ""

    def _mutated(self, node: Node, text: str) -> str:
        if not self._function or node.start_point[0] + 1 in self._without:
            return text
        if node.type == "expression_statement" and _deletable(self._raw(node)):
            number = self._add(node, "delete", "")
            return f"do {{ if (!uevt_is({number})) {{ {text} }} }} while (0);"
        for operator, after in self._alternatives(node):
            number = self._add(node, operator, after)
            kept = f"!!({text})" if after in ("true", "false") else f"({text})"
            text = f"(uevt_is({number}) ? ({after}) : {kept})"
        return text

    def _alternatives(self, node: Node) -> Iterator[tuple[str, str]]:
        """Operators and the texts that they give for an expression."""
        if node.type == "binary_expression":
            left, right = (self._raw(_part(node, name)) for name in ("left", "right"))
            sign = _part(node, "operator").type
            if sign in _RELATIONAL:
                yield "relational", f"{left} {_RELATIONAL[sign]} {right}"
            elif sign in ("&&", "||"):
                yield "drop clause", f"!!({left})"
                yield "drop clause", f"!!({right})"
            elif sign in _ARITHMETIC:
                yield "arithmetic", f"{left} {_ARITHMETIC[sign]} {right}"
        elif _is_condition(node):
            if not _of_loop(node):
                yield "always", "true"
            yield "never", "false"
        elif node.type == "number_literal" and not _in_declaration(node):
            yield "number", f"{self._raw(node)} + 1"
        elif node.type == "unary_expression" and self._raw(node).startswith("-E"):
            name = self._raw(node)[1:]
            if name in _ERRNO:
                yield "errno", f"-{_ERRNO[name]}"
        elif node.type == "unary_expression" and self._raw(node).startswith("!"):
            yield "drop not", f"!!({self._raw(node)[1:]})"

    def _add(self, node: Node, operator: str, after: str) -> int:
        number = len(self.mutants) + 1
        before = " ".join(self._raw(node).split())
        line = node.start_point[0] + 1
        self.mutants.append(Mutant(number, line, self._function, operator, before, after))
        return number


def _part(node: Node, name: str) -> Node:
    part = node.child_by_field_name(name)
    assert part is not None, f"{node.type} without {name}"
    return part


def _deletable(text: str) -> bool:
    called = re.match(r"(\w+)\s*\(", text)
    return len(text) > 1 and text.endswith(";") and not (called and _SILENT.match(called[1]))


def _is_condition(node: Node) -> bool:
    """Whether a node is the condition of an if, a loop or a ternary operator."""
    parent = node.parent
    if parent is None or node.type in ("(", ")", "comment"):
        return False
    if parent.type == "parenthesized_expression":
        above = parent.parent
        return above is not None and above.type in ("if_statement", "while_statement")
    return (
        parent.type == "conditional_expression" and parent.child_by_field_name("condition") == node
    )


def _of_loop(node: Node) -> bool:
    """Whether a condition, in its parentheses, is that of a loop, which would not end."""
    above = node.parent.parent if node.parent is not None else None
    return above is not None and above.type == "while_statement"


def _in_declaration(node: Node) -> bool:
    parent = node.parent
    while parent is not None and not parent.type.endswith("statement"):
        if parent.type in ("array_declarator", "enumerator", "bitfield_clause"):
            return True
        parent = parent.parent
    return False
