"""Rules that every case must follow.  A failure says what to write, and where."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from conformance.cases.case import Case, declared
from conformance.cases.discovery import case_modules
from conformance.ops.digest import digest
from tests.cases import literals
from tests.cases.variants import Outcome, all_variants

ROOT = Path(__file__).resolve().parents[2]
# A document or header and the tag it is read at.
_DOC = re.compile(r"[\w/.-]+\.(rst|c|h)(:\w+)?@(v\d+\.\d+|merge-window|rfc-v1)\b")
_SPEC = re.compile(r"[\w/.-]+\.[ch]: ?\w+")
_WAITING = {"time", "sleep", "threading", "subprocess", "random"}


class CaseFunction(Struct, frozen=True):
    """A test function of a case file: its syntax tree, and what it declares."""

    file: Path
    module: literals.Module
    node: ast.FunctionDef
    case: Case | None

    @property
    def place(self) -> str:
        """File, line and name."""
        return f"{self.file.relative_to(ROOT)}:{self.node.lineno} {self.node.name}"

    @property
    def findings(self) -> literals.Findings:
        """What its assertions compare."""
        return literals.examine(self.node, self.module)


@cache
def functions() -> list[CaseFunction]:
    """All test functions of all case files."""
    return list(_functions())


def _functions() -> Iterator[CaseFunction]:
    for module in case_modules():
        file = Path(inspect.getfile(module))
        tree = literals.read(file, ROOT)
        for node in tree.cases:
            yield CaseFunction(file, tree, node, declared(getattr(module, node.name)))


@cache
def cases() -> list[tuple[CaseFunction, Case]]:
    """The functions that are declared, with their declarations."""
    return [(each, each.case) for each in functions() if each.case]


def check(advice: str, wrong: Iterable[CaseFunction]) -> None:
    """Fail with the advice and the places where it applies."""
    places = [each.place for each in wrong]
    assert not places, "\n  ".join([advice, *places])


def test_every_file_declares_cases() -> None:
    assert {Path(inspect.getfile(each)) for each in case_modules()} == {
        each.file for each in functions()
    }


def test_every_function_is_declared() -> None:
    check("decorate it with @case", (each for each in functions() if not each.case))


def test_names_are_unique_in_a_file() -> None:
    seen = defaultdict(list)
    for each in functions():
        seen[each.file, each.node.name].append(each)
    check("rename it: it hides an earlier one", (found[-1] for found in seen.values() if found[1:]))


def test_docstrings_are_one_sentence() -> None:
    wrong = (each for each in functions() if not is_sentence(ast.get_docstring(each.node) or ""))
    check("write one sentence, with a full stop, as the docstring", wrong)


def test_every_case_compares_with_a_literal() -> None:
    advice = "assert that an answer equals a number, an errno name or bytes written in the case"
    check(advice, (each for each in functions() if not each.findings.compared))


def test_no_expectation_is_computed() -> None:
    advice = "write the value instead of computing it from conformance.abi or conformance.model"
    check(advice, (each for each in functions() if each.findings.computed))


def test_no_case_waits_by_itself() -> None:
    wrong = {each.file: each for each in functions() if _imports(each.module.tree) & _WAITING}
    advice = f"remove the imports of {', '.join(sorted(_WAITING))}; use eventually= or wait()"
    check(advice, wrong.values())


def _imports(tree: ast.Module) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.name for node in nodes for alias in node.names}


def test_spec_names_a_kernel_function() -> None:
    advice = "write spec=, FILE.c:FUNCTION or a function of trace_events_user.c"
    check(advice, (each for each, case in cases() if not _SPEC.match(case.spec)))


def test_doc_names_a_document_and_its_version() -> None:
    advice = "write doc=, FILE@TAG: what it says, or what user_events.rst says"
    check(advice, (each for each, case in cases() if not _DOC.match(case.doc)))


def test_a_surface_lives_in_one_folder() -> None:
    folders = defaultdict(set)
    for each, case in cases():
        folders[case.surface].add(each.file.parent)
    wrong = (each for each, case in cases() if len(folders[case.surface]) > 1)
    check("move the cases of this surface into one folder", wrong)


def test_ids_are_unique() -> None:
    ids = [variant.id for variant in all_variants()]
    assert len(ids) >= 200
    assert sorted(ids) == sorted(set(ids))


def test_no_id_of_a_case_is_like_a_variant_of_another() -> None:
    ids = {variant.id for variant in all_variants()}
    parametrised = tuple(f"{case.id}." for _, case in cases() if case.id not in ids)
    wrong = (each for each, case in cases() if case.id.startswith(parametrised))
    check("rename it: its id begins like a variant of another case", wrong)


def test_no_two_variants_run_the_same_program(recorded: dict[str, Outcome]) -> None:
    alike = defaultdict(list)
    for name, outcome in recorded.items():
        alike[digest(outcome.lockstep.program)].append(name)
    same = [" and ".join(names) for names in alike.values() if len(names) > 1]
    assert not same, "\n  ".join(["delete one of the variants that do the same:", *same])


def test_every_case_agrees_with_the_model(recorded: dict[str, Outcome]) -> None:
    """The model as a kernel works as late as it may; test_lying_kernel.py has one that does not."""
    assert {name: str(each.raised) for name, each in recorded.items() if each.raised} == {}
    assert [name for name, each in recorded.items() if each.accused] == []


def is_sentence(docstring: str) -> bool:
    """Whether a text is one sentence: one paragraph, one full stop, at its end."""
    text = " ".join(docstring.split())
    ends = re.findall(r"[.!?](?= [A-Z])|[.!?]$", text)
    return "\n\n" not in docstring and len(ends) == 1 and text.endswith(".")
