"""The rules about cases: a literal in each, no two alike, and what is declared is in order."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import conformance
from conformance.cases import case as declare
from conformance.cases.case import Case
from conformance.cases.discovery import case_modules
from conformance.ops.digest import digest
from tests.cases import literals
from tests.cases.variants import Outcome, Variant, all_variants

ROOT = Path(conformance.__file__).resolve().parents[1]
MODULES = case_modules()
NAMES = [module.__name__.removeprefix("conformance.cases.") for module in MODULES]
each_module = pytest.mark.parametrize("module", MODULES, ids=NAMES)

# A file and the tag of the kernel it is read in, then our own words.
_DOC = re.compile(r"[\w/.-]+\.(rst|c|h)(:\w+)?@(v\d+\.\d+|merge-window|rfc-v1)\b")
_SPEC = re.compile(r"[\w/.-]+\.[ch]: ?\w+")


def functions_of(module: ModuleType) -> list[Callable[..., None]]:
    """The test functions a module defines."""
    return [
        function
        for name, function in vars(module).items()
        if name.startswith("test") and inspect.isfunction(function)
        if function.__module__ == module.__name__
    ]


def cases_of(module: ModuleType) -> list[Case]:
    """What is declared about the test functions of a module."""
    return [case for each in functions_of(module) if (case := declare.declared(each))]


def tree_of(module: ModuleType) -> literals.Module:
    """The syntax tree of a module."""
    return literals.read(Path(str(module.__file__)), ROOT)


@each_module
def test_every_test_function_is_declared(module: ModuleType) -> None:
    assert functions_of(module)
    bare = [each.__name__ for each in functions_of(module) if declare.declared(each) is None]
    assert bare == []


@each_module
def test_no_function_hides_another_of_its_name(module: ModuleType) -> None:
    assert len(tree_of(module).cases) == len(functions_of(module))


@each_module
def test_every_docstring_is_one_sentence(module: ModuleType) -> None:
    wrong = [
        function.name
        for function in tree_of(module).cases
        if not is_sentence(ast.get_docstring(function) or "")
    ]
    assert wrong == []


@each_module
def test_every_case_compares_with_a_literal(module: ModuleType) -> None:
    tree = tree_of(module)
    wrong = [each.name for each in tree.cases if not literals.examine(each, tree).compared]
    assert wrong == []


@each_module
def test_no_answer_is_computed_from_the_tables_or_the_model(module: ModuleType) -> None:
    tree = tree_of(module)
    found = {each.name: literals.examine(each, tree).computed for each in tree.cases}
    assert {name: computed for name, computed in found.items() if computed} == {}


@each_module
def test_no_case_waits_by_itself(module: ModuleType) -> None:
    imported = {
        alias.name
        for node in ast.walk(tree_of(module).tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported.isdisjoint({"time", "sleep", "threading", "subprocess", "random"})


def test_a_surface_lives_in_one_folder() -> None:
    folders = defaultdict(set)
    for module in MODULES:
        for case in cases_of(module):
            folders[case.surface].add(module.__name__.rpartition(".")[0])
    assert {name: found for name, found in folders.items() if len(found) > 1} == {}


@each_module
def test_doc_and_spec_say_where_to_look(module: ModuleType) -> None:
    wrong = {
        case.id: (case.doc, case.spec)
        for case in cases_of(module)
        if not _DOC.match(case.doc) or not _SPEC.match(case.spec)
    }
    assert wrong == {}


def test_ids_are_unique() -> None:
    ids = [variant.id for variant in all_variants()]
    assert len(ids) >= 200
    assert sorted(ids) == sorted(set(ids))


def test_no_id_of_a_case_begins_as_a_variant_of_another() -> None:
    cases = {case.id for module in MODULES for case in cases_of(module)}
    nested = [(a, b) for a in cases for b in cases if b.startswith(f"{a}.") and has_variants(a)]
    assert nested == []


def has_variants(case_id: str) -> bool:
    """Whether variants are appended to the id of a case."""
    return all(variant.id != case_id for variant in all_variants() if variant.case.id == case_id)


def test_no_two_variants_run_the_same_program(recorded: dict[str, Outcome]) -> None:
    alike = defaultdict(list)
    for name, outcome in recorded.items():
        alike[digest(outcome.lockstep.program)].append(name)
    assert [names for names in alike.values() if len(names) > 1] == []


def test_every_case_agrees_with_the_model(
    variants: list[Variant], recorded: dict[str, Outcome]
) -> None:
    wrong = {v.id: str(recorded[v.id].raised) for v in variants if recorded[v.id].raised}
    assert wrong == {}


def is_sentence(docstring: str) -> bool:
    """Whether a text is one sentence: one paragraph, one full stop, at its end."""
    text = " ".join(docstring.split())
    ends = re.findall(r"[.!?](?= [A-Z])|[.!?]$", text)
    return "\n\n" not in docstring and len(ends) == 1 and text.endswith(".")


# The rules themselves


@pytest.mark.parametrize(
    ("docstring", "good"),
    [
        ("A bit is cleared.", True),
        ("A bit of 6.12 is cleared: e.g. the\nfirst.", True),
        ("A bit is cleared", False),
        ("A bit is cleared.  Its neighbours stay.", False),
        ("A bit is cleared.\n\nIts neighbours stay.", False),
        ("", False),
    ],
)
def test_a_sentence_is_one(docstring: str, good: bool) -> None:
    assert is_sentence(docstring) is good


HEAD = """
from conformance.abi.uapi import USER_REG, dyn_loc as loc
from conformance.model import definition
TABLE = {"a": 1}
SIZE = USER_REG.size
@variants({})
def test(ue, left, right):
"""


@pytest.mark.parametrize(
    "body",
    [
        "assert ue.word().value == 1",
        "assert 1 == ue.word().value",
        "assert ue.read() == f'u:{ue.name()} u32 a\\n'",
        "assert ue.word().value == left",
        "assert ue.word().value == TABLE['a']",
        "assert ue.word().value == (right if left else 0)",
        "assert ue.word().errno == ue.dated('x', since='EBADF', before='')",
        "assert ue.read() == [f'{ue.name()}: a={each}' for each in left]",
        "assert ue.read() == [ue.line('a=1', *left)]",
        "assert ue.read() == ue.status_line(1, ue.name(), 'ftrace')",
        "assert ue.ioctl(USER_REG.size).errno == 'EINVAL'",
        "expected = 2 + 2\n    assert ue.word().value == expected",
        "raw = USER_REG.pack({})\n    assert ue.write(raw).value == 8",
        "assert ue.read().startswith('name: ')",
        "for text in ('a', 'b'):\n        assert ue.read() == text",
        "seen = []\n    seen.append(ue.read())\n    assert seen == ['a']",
    ],
)
def test_a_literal_is_recognised(body: str) -> None:
    found = examined(body)
    assert found.compared
    assert found.computed == ()


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "assert ue.word().value",
        "assert not ue.word().errno",
        "assert ue.word().value == ue.word().value",
        "assert left == right",
        "before = ue.read()\n    assert ue.read() == before",
        "assert ue.write(b'a').value == len(ue.read())",
        "assert 1 == 1",
        "seen = []\n    seen.append(ue.read())\n    assert seen == ue.read()",
    ],
)
def test_what_is_no_literal_is_refused(body: str) -> None:
    assert examined(body).compared == 0


@pytest.mark.parametrize(
    "body",
    [
        "assert ue.word().value == USER_REG.size",
        "assert ue.word().value == SIZE",
        "assert ue.word().value == loc(16, 4)",
        "assert ue.word().value == int(USER_REG.size)",
        "assert ue.read() == definition.print_format(())",
        "expected = USER_REG.size + 4\n    assert ue.word().value == expected",
        "expected = [loc(n, 1) for n in left]\n    assert ue.read() == expected",
    ],
)
def test_what_is_computed_is_refused(body: str) -> None:
    found = examined(body)
    assert found.compared == 0
    assert len(found.computed) == 1


def examined(body: str) -> literals.Findings:
    """What the rules find in a case with this body."""
    module = literals.parse(f"{HEAD}    {body}\n", ROOT)
    return literals.examine(module.cases[0], module)
