"""Mutants of a C source, all in one text: a variable chooses the one that acts.

Every place that a mutant changes also notes that it was reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import tree_sitter_c
from msgspec import Struct
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
# A limit, a flag or a choice by its name.
_NAME = re.compile(r"[A-Z]+(?:_[A-Z0-9]+)+$")
_BOOLEAN = {"true": "false", "false": "true"}
_CONSTANT = {"sizeof_expression", "offsetof_expression", "initializer_list"}
_CONSTANT_PARENTS = ("initializer_pair", "case_statement", "init_declarator", "preproc_ifdef")
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


class Mutant(Struct, frozen=True):
    """A change of one place: its number, line from 1, function, operator, and both texts."""

    number: int
    line: int
    function: str
    operator: str
    before: str
    after: str

    @property
    def change(self) -> str:
        """The operator and what it changes, on a line."""
        after = f" -> {' '.join(self.after.split())}" if self.after else ""
        return f"{self.operator}: {self.before}{after}"

    def __str__(self) -> str:
        return f"{self.number} {self.function}:{self.line} {self.change}"


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
        for group in _groups(node):
            text.append(self._source[at : group[0].start_byte].decode())
            if len(group) > 1:
                text.append(self._ordered(group))
            else:
                (child,) = group
                text.append(self._raw(child) if child in constant else self._text(child))
            at = group[-1].end_byte
        text.append(self._source[at : node.end_byte].decode())
        return self._mutated(node, "".join(text))

    def _ordered(self, group: Sequence[Node]) -> str:
        """Statements in a row; a mutant exchanges two neighbours that have a name in common."""
        texts = [self._text(each) for each in group]
        chosen = []
        for at, pair in enumerate(pairwise(group)):
            first, second = map(self._raw, pair)
            if not self._left_alone(pair[1]) and _in_order(first, second):
                number = self._add(pair[0], "swap", f"{second} {first}", f"{first} {second}")
                order = [*texts[:at], texts[at + 1], texts[at], *texts[at + 2 :]]
                chosen.append(f"if (uevt_is({number})) {{ {' '.join(order)} }} else ")
        kept = " ".join(texts)
        return f"{''.join(chosen)}{{ {kept} }}" if chosen else kept

    def _name(self, function: Node) -> str:
        found = re.search(r"(\w+)\s*\(", self._raw(_part(function, "declarator")))
        return found[1] if found else ""

    def _mutated(self, node: Node, text: str) -> str:
        if self._left_alone(node):
            return text
        if node.type == "expression_statement" and _deletable(self._raw(node)):
            number = self._add(node, "delete", "")
            return f"do {{ if (!uevt_is({number})) {{ {text} }} }} while (0);"
        for operator, after in self._alternatives(node):
            number = self._add(node, operator, after)
            kept = f"!!({text})" if after in ("true", "false") else f"({text})"
            text = f"(uevt_is({number}) ? ({after}) : {kept})"
        return text

    def _left_alone(self, node: Node) -> bool:
        return not self._function or node.start_point[0] + 1 in self._without

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
        elif node.type in _BOOLEAN:
            yield "boolean", _BOOLEAN[node.type]
        elif node.type == "identifier" and _is_constant(node, self._raw(node)):
            yield "flag", "0" if _is_flag(node) else f"{self._raw(node)} + 1"

    def _add(self, node: Node, operator: str, after: str, before: str = "") -> int:
        number = len(self.mutants) + 1
        before = " ".join((before or self._raw(node)).split())
        line = node.start_point[0] + 1
        self.mutants.append(Mutant(number, line, self._function, operator, before, after))
        return number


def _part(node: Node, name: str) -> Node:
    part = node.child_by_field_name(name)
    assert part is not None, f"{node.type} without {name}"
    return part


def _groups(node: Node) -> Iterator[list[Node]]:
    """The children of a node; expression statements in a row of a block are one group."""
    block = node.type == "compound_statement"
    for statements, some in groupby(node.children, _is_statement):
        if block and statements:
            yield list(some)
        else:
            yield from ([each] for each in some)


def _is_statement(node: Node) -> bool:
    """Whether a node is an expression statement, and neither head nor body of a macro's loop."""
    before = node.prev_sibling
    ours = node.type == "expression_statement" and not _is_loop_head(node)
    return ours and not (before is not None and _is_loop_head(before))


def _is_loop_head(node: Node) -> bool:
    """Whether a node is `list_for_each_entry(…)` or the like: a call without its semicolon."""
    return node.type == "expression_statement" and node.children[-1].is_missing


def _in_order(first: str, second: str) -> bool:
    """Whether the order of two statements may matter: one calls or sets what the other uses."""
    if not (_deletable(first) and _deletable(second)):
        return False
    if re.search(r"[a-z]\(", first + second):
        return bool(_names(first) & _names(second))
    return any(text.split(" = ")[0] in other for text, other in ((first, second), (second, first)))


def _names(statement: str) -> set[str]:
    """Names in a statement, those of called functions apart."""
    return set(re.findall(r"\b[a-z_]\w*\b(?!\()", statement))


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


def _is_constant(node: Node, text: str) -> bool:
    """Whether a name is that of a constant in an expression that is not itself constant."""
    above = node.parent
    if not _NAME.match(text) or above is None or _in_declaration(node):
        return False
    called = above.type == "call_expression" and above.child_by_field_name("function") == node
    return not called and above.type not in _CONSTANT_PARENTS


def _is_flag(node: Node) -> bool:
    """Whether a constant is combined with others, or passed on."""
    above = node.parent
    assert above is not None
    if above.type in ("binary_expression", "assignment_expression"):
        return _part(above, "operator").type in ("&", "|", "&=", "|=")
    return above.type == "argument_list"


def _in_declaration(node: Node) -> bool:
    parent = node.parent
    while parent is not None and not parent.type.endswith("statement"):
        if parent.type in ("array_declarator", "enumerator", "bitfield_clause"):
            return True
        parent = parent.parent
    return False
