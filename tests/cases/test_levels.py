"""The level of a case agrees with its documentation and the code that decides it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from conformance.cases.case import Surface
from conformance.cases.discovery import all_cases, case_modules
from conformance.results.outcome import Level

# Only what these files decide is a promise of user_events.
_OWN = ("trace_events_user.c:", "include/linux/user_events.h:", "include/uapi/linux/user_events.h:")
# A document or header of the kernel, its versions, a section or name in it, and what it says there.
_CITATION = re.compile(
    r"(Documentation/[\w/.-]+\.rst|include/[\w/.-]+\.h)"
    r"@(v\d+\.\d+|merge-window)( and @v\d+\.\d+)?: [^:]+: ."
)
_SILENT = re.compile(r"\b(silent|nothing|not (described|mentioned))\b")

each_module = pytest.mark.parametrize(
    "module", case_modules(), ids=lambda module: module.__name__.partition("cases.")[2]
)


def surfaces(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Name and level of each ``surface(…)`` of a file."""
    for name, each in vars(module).items():
        if isinstance(each, Surface):
            yield name, each.defaults.get("level", "")


def own_levels(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """Function, name of its surface, and the level of each declaration that states one."""
    body = ast.parse(inspect.getsource(module)).body
    functions = [each for each in body if isinstance(each, ast.FunctionDef)]
    calls = [(each, call) for each in functions for call in each.decorator_list]
    for function, call in calls:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            for keyword in call.keywords:
                if keyword.arg == "level":
                    yield function.name, call.func.id, ast.literal_eval(keyword.value)


@each_module
def test_a_file_states_the_level_of_its_cases(module: ModuleType) -> None:
    found = dict(surfaces(module))
    assert found
    assert all(found.values()), "write level= in surface(…)"


@each_module
def test_a_case_states_only_a_level_that_differs(module: ModuleType) -> None:
    defaults = dict(surfaces(module))
    repeated = [name for name, surface, level in own_levels(module) if defaults[surface] == level]
    assert repeated == [], "remove level=: surface(…) states it"


def test_a_contract_cites_what_the_kernel_documents() -> None:
    wrong = {
        case.id: case.doc
        for case in all_cases()
        if case.level is Level.CONTRACT
        and (not _CITATION.match(case.doc) or _SILENT.search(case.doc))
    }
    assert wrong == {}, "write doc=, FILE@TAG: SECTION: SENTENCE, or another level="


def test_only_user_events_decides_contract_and_behaviour() -> None:
    wrong = {
        case.id: case.spec
        for case in all_cases()
        if case.level is not Level.DETAIL and not case.spec.startswith(_OWN)
    }
    assert wrong == {}, 'write level="detail", or as spec= the function of user_events'


@pytest.mark.parametrize(
    ("doc", "cited"),
    [
        ("Documentation/trace/user_events.rst@v6.12: Status: the bit is updated", True),
        ("Documentation/trace/user_events.rst@v5.19 and @v6.1: Status: a page", True),
        ("include/uapi/linux/user_events.h@v6.12: struct user_reg: packed", True),
        ("Documentation/trace/user_events.rst@v6.12: Unregistering", False),
        ("trace_events_user.c@v6.12: user_reg_get: copies", False),
    ],
)
def test_a_citation_names_file_version_place_and_sentence(doc: str, cited: bool) -> None:
    assert bool(_CITATION.match(doc)) is cited
