"""Mutants of a Python source: one place changed at a time.

What no kernel can contradict is left alone: docstrings, annotations, assertions, the reason that an
errno is given with, and what the model refuses to judge (NotModelled).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

_RELATIONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In},
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.FloorDiv},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr},
    ast.BitOr: ast.BitAnd,
}
_ALONE = (ast.Assert, ast.Import, ast.ImportFrom, ast.arguments)
_ALONE_FIELDS = ("decorator_list", "returns", "annotation", "bases", "format_spec")
# Removed as statements.
_DELETED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)


class Mutant(Struct, frozen=True):
    """A change: its number in the source, function ("" at import), lines of its statement, text."""

    number: int
    function: str
    lines: range
    text: str


class _Site(Struct, frozen=True):
    """A place in a tree, and what may stand there instead."""

    parent: ast.AST
    field: str
    index: int | None
    other: ast.AST
    function: str
    lines: range
    text: str

    def replace(self) -> None:
        if self.index is None:
            setattr(self.parent, self.field, self.other)
        else:
            getattr(self.parent, self.field)[self.index] = self.other


def mutants(source: str) -> list[Mutant]:
    """All mutants of a source, in order of their lines."""
    found = enumerate(_sites(ast.parse(source), "", range(0)))
    return [Mutant(number, each.function, each.lines, each.text) for number, each in found]


def mutated(source: str, number: int) -> ast.Module:
    """The source with one mutant.  Raises IndexError for a number that does not exist."""
    tree = ast.parse(source)
    list(_sites(tree, "", range(0)))[number].replace()
    return ast.fix_missing_locations(tree)


def _sites(node: ast.AST, function: str, lines: range) -> Iterator[_Site]:
    for name, value in ast.iter_fields(node):
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _left_alone(node, name, index, child):
                continue
            at = _lines_of(child) if isinstance(child, ast.stmt) else lines
            for operator, other in _others(node, name, child):
                before, after = (" ".join(ast.unparse(each).split()) for each in (child, other))
                place = index if isinstance(value, list) else None
                text = f"{operator}: {before} -> {after}"
                yield _Site(node, name, place, other, function, at, text)
            below = child.name if isinstance(child, ast.FunctionDef) else function
            yield from _sites(child, below, at)


def _lines_of(statement: ast.stmt) -> range:
    """The lines of a statement, without those of its body."""
    body = getattr(statement, "body", None)
    end = body[0].lineno if body else (statement.end_lineno or statement.lineno) + 1
    return range(statement.lineno, max(end, statement.lineno + 1))


def _left_alone(parent: ast.AST, field: str, index: int, child: ast.AST) -> bool:
    if isinstance(child, _ALONE) or field in _ALONE_FIELDS or _refuses(child):
        return True
    match parent, child:
        case _, ast.Expr(value=ast.Constant()):
            return True
        case _, ast.Assign(targets=[ast.Name(id="reason")]):
            return True
        case ast.Call(func=ast.Name(id="Errno")), _:
            return field == "args" and index > 0
        # Misspelt names of switches and members: the model would only raise KeyError.
        case ast.Call(func=ast.Attribute(attr="has" | "fixed")), ast.Constant():
            return True
        case ast.Subscript(), ast.Constant(value=str()):
            return True
    return False


def _refuses(node: ast.AST) -> bool:
    """Whether the model refuses to judge."""
    call = node.exc if isinstance(node, ast.Raise) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) == "NotModelled"


def _others(parent: ast.AST, field: str, child: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The replacements of a node, each with the name of the operator."""
    if field in ("test", "ifs"):
        yield "always", ast.Constant(True)
        body = getattr(parent, "body", None)
        # A refusal that is lost: no case may meet it.
        if not (isinstance(body, list) and all(map(_refuses, body))):
            yield "never", ast.Constant(False)
    if isinstance(child, _DELETED):
        yield "delete", ast.Pass()
    match child:
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "delete", ast.Pass()
        case ast.Compare(left, operators, right):
            for at, each in enumerate(operators):
                changed = [*operators[:at], _RELATIONS[type(each)](), *operators[at + 1 :]]
                yield "relation", ast.Compare(left, changed, right)
        case ast.BoolOp(operator, values):
            for at in range(len(values)):
                rest = [*values[:at], *values[at + 1 :]]
                yield "clause", ast.BoolOp(operator, rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", operand
        case ast.BinOp(left, operation, right) if type(operation) in _ARITHMETIC:
            yield "arithmetic", ast.BinOp(left, _ARITHMETIC[type(operation)](), right)
        case ast.Constant(bool() as value):
            yield "literal", ast.Constant(not value)
        case ast.Constant(int() as value):
            yield "literal", ast.Constant(value + 1)
            yield "literal", ast.Constant(value - 1)
        case ast.Constant(str() as value):
            yield "literal", ast.Constant(_other_text(parent, value))
        case ast.Constant(bytes() as value):
            yield "literal", ast.Constant(value + b"x")


def _other_text(parent: ast.AST, text: str) -> str:
    if isinstance(parent, ast.Call | ast.IfExp) and text.isupper() and text.startswith("E"):
        return "EINVAL" if text != "EINVAL" else "EFAULT"
    return f"{text}x"
