"""The level of a case agrees with its documentation and the code that decides it."""

from __future__ import annotations

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


@each_module
def test_a_file_states_the_level_of_its_cases(module: ModuleType) -> None:
    found = dict(surfaces(module))
    assert found
    assert all(found.values()), "write level= in surface(…)"


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
