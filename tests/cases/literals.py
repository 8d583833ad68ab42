"""What counts as a literal in a case, and how an expectation must not be computed.

An answer is what comes from ``ue``, except for the name of an event and a choice by a dated switch
or a known bug.  Every other expression is a literal: constants, values of the table of variants,
tables of the module.  Facts of the ABI tables or the model must not occur in an assertion, except
as arguments of an operation.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct, field

# Packages whose facts must not become expectations.
_FACTS = ("conformance.abi", "conformance.model")
# Methods of ``ue`` that issue no operation.
_NO_ANSWER = frozenset({"name", "prefix", "bug", "dated", "line", "status_line"})
# Methods that add their arguments to a list or set.
_FILLING = frozenset({"add", "append", "extend", "insert", "update"})
_QUESTIONS = {"startswith", "endswith", "fullmatch", "isdisjoint", "issubset", "issuperset"}


class Scope(Struct):
    """Names with answers of the kernel, and names with facts of the ABI or the model."""

    answers: set[str] = field(default_factory=set)
    facts: set[str] = field(default_factory=set)

    def run(self, body: list[ast.stmt]) -> None:
        """Follow assignments, loops and calls that fill a list, until nothing changes."""
        before = None
        while before != (before := (len(self.answers), len(self.facts))):
            for target, value in (pair for part in body for pair in _bindings(part)):
                names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
                self.answers |= names if self.answer(value) else set()
                self.facts |= names if self.fact(value) else set()

    def answer(self, node: ast.AST) -> bool:
        """Whether an expression depends on an answer."""
        match node:
            case ast.Name(id=name):
                return name in self.answers
            case ast.Attribute(value=ast.Name(id="ue"), attr=attribute) if attribute in _NO_ANSWER:
                return False
            case ast.Subscript(value=table):
                return self.answer(table)
        return any(map(self.answer, ast.iter_child_nodes(node)))

    def fact(self, node: ast.AST) -> bool:
        """Whether an expression depends on a fact, other than as an argument of an operation."""
        match node:
            case ast.Name(id=name):
                return name in self.facts
            case ast.Call(func=ast.Name(id=name)) if hasattr(builtins, name):
                pass
            case ast.Call(func=function) if self.answer(node):
                return self.fact(function)
        return any(map(self.fact, ast.iter_child_nodes(node)))


def _bindings(body: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Targets of values, in a statement and all its parts."""
    for node in ast.walk(body):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield from zip(targets, values, strict=True)
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield target, value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield target, value
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield target, value
            case ast.FunctionDef(name=name):
                yield ast.Name(name), node
            case ast.Call(func=ast.Attribute(value=target, attr=attribute), args=values):
                if attribute in _FILLING:
                    yield from ((target, value) for value in values)


class Module(Struct, frozen=True):
    """A module of cases: its tree, and its names with facts."""

    tree: ast.Module
    facts: frozenset[str]

    @property
    def cases(self) -> list[ast.FunctionDef]:
        """The test functions."""
        functions = [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]
        return [function for function in functions if function.name.startswith("test")]


@cache
def read(file: Path, root: Path) -> Module:
    """Read a module of cases below ``root``, and the modules it imports from there."""
    return parse(file.read_text(encoding="utf-8"), root)


def parse(source: str, root: Path) -> Module:
    """Parse a module."""
    tree = ast.parse(source)
    scope = Scope()
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=str(module), names=aliases):
                file = root.joinpath(*module.split(".")).with_suffix(".py")
                for alias in aliases:
                    if module.startswith(_FACTS) or (
                        module.startswith("conformance.cases.")
                        and file.is_file()
                        and alias.name in read(file, root).facts
                    ):
                        scope.facts.add(alias.asname or alias.name)
            case ast.Assign() | ast.AnnAssign():
                scope.run([node])
            case ast.FunctionDef(name=name) if _returns_fact(node, scope.facts):
                scope.facts.add(name)
    return Module(tree, frozenset(scope.facts))


def _returns_fact(function: ast.FunctionDef, facts: set[str]) -> bool:
    scope = Scope({each.arg for each in function.args.args}, set(facts))
    scope.run(function.body)
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return any(value and scope.fact(value) for value in returned)


class Findings(Struct, frozen=True):
    """What the assertions of a case compare."""

    compared: int
    computed: tuple[str, ...]


def examine(function: ast.FunctionDef, module: Module) -> Findings:
    """Count assertions that compare with a literal, and list those with a computed expectation."""
    scope = Scope({"ue"}, set(module.facts))
    scope.run(function.body)
    asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
    return Findings(
        sum(_compares(node.test, scope) for node in asserts),
        tuple(ast.unparse(node) for node in asserts if scope.fact(node.test)),
    )


def _compares(test: ast.expr, scope: Scope) -> bool:
    """Whether a test compares an answer with a literal."""
    for node in ast.walk(test):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
            case ast.Call(func=ast.Attribute(left, attribute), args=others):
                # text.startswith("…"), re.fullmatch("…", text)
                sides = [left, *others] if attribute in _QUESTIONS else []
            case _:
                continue
        literal = [not scope.answer(side) and not scope.fact(side) for side in sides]
        if any(literal) and any(map(scope.answer, sides)):
            return True
    return False
