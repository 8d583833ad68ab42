"""What counts as a literal in a case, and how an expectation must not be computed.

A case compares an answer of the kernel with something written in the case: constants, values of its
table of variants, tables of the module, and expressions of these alone; the name of an event; and a
choice between such values by a dated switch or a known bug.  The result of an operation does not
count, nor does a fact of the ABI tables or the model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

# Packages whose facts must not become expectations.
COMPUTED = ("conformance.abi", "conformance.model")
# Methods of ``ue`` that issue no operation: names, and choices by a dated switch or a bug.
_NAMES = frozenset({"name", "prefix"})
_CHOICES = frozenset({"bug", "dated", "line", "status_line"})
# Methods that add their arguments to a list or set.
_FILLING = frozenset({"add", "append", "extend", "insert", "update"})
_BUILT_IN = "bytes dict enumerate frozenset int len list max min range reversed set sorted str sum"
_PURE = frozenset([*_BUILT_IN.split(), "tuple", "zip"])
# Decorators of a case that fill no parameter.
_DECLARING = frozenset({"case", "spec", "doc"})


@dataclass(frozen=True, slots=True)
class Module:
    """A module of cases: its tree, its literal names, and its names from the ABI and the model."""

    tree: ast.Module
    literal: frozenset[str]
    computed: frozenset[str]

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
    literal: set[str] = set()
    computed: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                named = {(alias.asname or alias.name).partition(".")[0] for alias in names}
                if _from(node).startswith(COMPUTED):
                    computed |= named
                elif _from(node).startswith("conformance.cases."):
                    literal |= named & _exported(_from(node), root)
            case ast.Assign() | ast.AnnAssign():
                scope = Scope(frozenset(literal), frozenset(computed))
                scope.assign(node)
                literal |= scope.known - literal
                computed |= scope.tainted - computed
            case ast.FunctionDef(name=name) if _is_pure(node, literal):
                literal.add(name)
    return Module(tree, frozenset(literal), frozenset(computed))


def _from(node: ast.Import | ast.ImportFrom) -> str:
    return node.names[0].name if isinstance(node, ast.Import) else node.module or ""


def _exported(module: str, root: Path) -> frozenset[str]:
    """Literal names of another module of cases."""
    file = root.joinpath(*module.split(".")).with_suffix(".py")
    return read(file, root).literal | {"load_definitions"} if file.is_file() else frozenset()


def _is_pure(function: ast.FunctionDef, literal: set[str]) -> bool:
    """Whether a function returns only expressions of its arguments and of literals."""
    scope = Scope(frozenset(literal), frozenset())
    parameters = [argument.arg for argument in function.args.args]
    if "ue" in parameters or function.name.startswith("test"):
        return False
    scope.known |= set(parameters)
    scope.run(function.body)
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return bool(returned) and all(value and scope.literal(value) for value in returned)


@dataclass(slots=True)
class Scope:
    """Names that are literals (``known``) or computed from ABI and model (``tainted``)."""

    module_literal: frozenset[str]
    module_computed: frozenset[str]
    known: set[str] = field(default_factory=set)
    tainted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.known |= self.module_literal
        self.tainted |= self.module_computed

    def run(self, body: list[ast.stmt]) -> None:
        """Process all assignments and loops, in the order of the text."""
        for statement in body:
            for node in ast.walk(statement):
                match node:
                    case ast.Assign() | ast.AnnAssign():
                        self.assign(node)
                    case ast.For(target=target, iter=source):
                        self._bind(target, source)
                    case ast.Call(func=ast.Attribute(ast.Name(id=name), attr), args=arguments):
                        if attr in _FILLING and not all(map(self.literal, arguments)):
                            self.known.discard(name)

    def assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        """Process an assignment."""
        if node.value is None:
            return
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for part, value in zip(target.elts, node.value.elts, strict=True):
                    self._bind(part, value)
            else:
                self._bind(target, node.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        if self.literal(value):
            self.known |= names
        else:
            self.known -= names
        if self.computed(value):
            self.tainted |= names

    def literal(self, node: ast.expr) -> bool:
        """Whether an expression is made of literals."""
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self.known
            case ast.Attribute(value=ast.Name(id="ue"), attr=attribute):
                return attribute in _NAMES
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                return self.literal(value)
            case ast.Call():
                return self._literal_call(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._literal_comprehension(node)
            case ast.IfExp(body=body, orelse=otherwise):
                return self.literal(body) and self.literal(otherwise)
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return (bool(parts) and all(map(self.literal, parts))) or _is_empty_display(node)

    def _literal_call(self, node: ast.Call) -> bool:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        arguments = [a.value if isinstance(a, ast.Starred) else a for a in arguments]
        match node.func:
            case ast.Attribute(value=ast.Name(id="ue"), attr=attribute) if attribute in _CHOICES:
                return all(map(self.literal, arguments))
            case ast.Name(id=name) if name in _PURE or name in self.known:
                return all(map(self.literal, arguments))
            case ast.Attribute(value=ast.Name(id=module)) if module in ("struct", "re"):
                return all(map(self.literal, arguments))
            case ast.Attribute() as method:
                return self.literal(method) and all(map(self.literal, arguments))
        return False

    def _literal_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> bool:
        inner = Scope(frozenset(self.known), frozenset(self.tainted))
        for generator in node.generators:
            inner._bind(generator.target, generator.iter)
        if isinstance(node, ast.DictComp):
            return inner.literal(node.key) and inner.literal(node.value)
        return inner.literal(node.elt)

    def computed(self, node: ast.expr) -> bool:
        """Whether an expression is computed from the ABI tables or the model.

        Arguments of an operation are packing, which is allowed: its result is the kernel's.
        """
        if isinstance(node, ast.Call) and not self.computed(node.func):
            if self._performs(node.func):
                return False
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            return any(map(self.computed, arguments))
        if isinstance(node, ast.Name):
            return node.id in self.tainted
        return any(
            self.computed(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)
        )

    def _performs(self, function: ast.expr) -> bool:
        """Whether a call issues operations."""
        match function:
            case ast.Name(id=name):
                return name not in _PURE and name not in self.known
            case ast.Attribute(value=value):
                return not self.literal(value)
        return True


def _is_empty_display(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.JoinedStr():
            return not node.values
    return False


@dataclass(frozen=True, slots=True)
class Findings:
    """What the assertions of a case compare."""

    compared: int
    computed: tuple[str, ...]


def examine(function: ast.FunctionDef, module: Module) -> Findings:
    """Count assertions that compare with a literal, and list those with a computed expectation."""
    scope = Scope(module.literal, module.computed)
    scope.known |= set(_table_names(function))
    scope.run(function.body)
    asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
    return Findings(
        sum(_compares(node.test, scope) for node in asserts),
        tuple(ast.unparse(node) for node in asserts if scope.computed(node.test)),
    )


def _table_names(function: ast.FunctionDef) -> Iterator[str]:
    """The parameters that tables of variants fill: all but ``ue``."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name) if name not in _DECLARING:
                yield from (argument.arg for argument in function.args.args[1:])


def _compares(test: ast.expr, scope: Scope) -> bool:
    """Whether a test compares an observation with a literal."""
    for node in ast.walk(test):
        match node:
            case ast.Compare():
                written = [scope.literal(side) for side in (node.left, *node.comparators)]
                if any(written) and not all(written):
                    return True
            case ast.Call(func=ast.Attribute(value=value), args=[argument, *_]):
                # text.startswith("…"), re.fullmatch("…", text)
                sides = [scope.literal(value), *map(scope.literal, node.args)]
                if scope.literal(argument) and not all(sides) and _is_question(node):
                    return True
    return False


def _is_question(node: ast.Call) -> bool:
    questions = {"startswith", "endswith", "fullmatch", "isdisjoint", "issubset", "issuperset"}
    return isinstance(node.func, ast.Attribute) and node.func.attr in questions
