"""The rooms of the house keep their doors: imports point downward only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("conformance", "kernels", "vm")

BELOW_CASES = {"conformance.abi", "conformance.program", "conformance.model", "conformance.sut"}
JUDGING = {"conformance.expectations", "conformance.outcome", "conformance.schema"}
# What all rooms of the report may use: what they share, and a run as data.
RUN_AND_BELOW = {"conformance.outcome", "conformance.report", "conformance.report.run"}
REPORTS = {"conformance.report.export", "conformance.report.matrix", "conformance.report.screen"}
BELOW_PLUGIN = (
    BELOW_CASES
    | JUDGING
    | {"conformance.cases", "conformance.leftovers", "conformance.measured"}
    | {"conformance.attempt", "conformance.keeper", "conformance.runner"}
    | RUN_AND_BELOW
    | REPORTS
    | {"conformance.facilities", "conformance.surroundings"}
    | {"conformance.usermodules", "conformance.complaints"}
)

# Room -> the other rooms it may import.  A module belongs to the longest name that
# it starts with; one that belongs to none is a room nobody has thought about.
MAY_IMPORT: dict[str, set[str]] = {
    "conformance.abi": set(),
    "conformance.schema": set(),
    "conformance.outcome": {"conformance.schema"},
    "conformance.expectations": {"conformance.outcome"},
    "conformance.program": {"conformance.abi"},
    "conformance.model": {"conformance.abi", "conformance.program"},
    "conformance.sut": {"conformance.abi", "conformance.program", "conformance.model"},
    "conformance.cases": BELOW_CASES,
    "conformance.leftovers": BELOW_CASES,
    "conformance.facilities": BELOW_CASES | {"conformance.cases"},
    "conformance.surroundings": BELOW_CASES | {"conformance.leftovers"},
    "conformance.measured": BELOW_CASES | {"conformance.cases", "conformance.outcome"},
    "conformance.stated": set(),
    "conformance.attempt": BELOW_CASES
    | {"conformance.cases", "conformance.measured", "conformance.outcome", "conformance.stated"},
    "conformance.usermodules": BELOW_CASES | {"conformance.attempt", "conformance.outcome"},
    "conformance.keeper": BELOW_CASES
    | {"conformance.cases", "conformance.leftovers", "conformance.outcome"}
    | {"conformance.attempt", "conformance.facilities", "conformance.surroundings"}
    | {"conformance.usermodules"},
    "conformance.runner": BELOW_CASES
    | JUDGING
    | {"conformance.cases", "conformance.measured", "conformance.keeper"}
    | {"conformance.attempt", "conformance.usermodules", "conformance.complaints"},
    "conformance.complaints": {"conformance.outcome"},
    "conformance.contract": BELOW_CASES | {"conformance.cases"},
    "conformance.pages": set(),
    "conformance.specification": BELOW_CASES
    | {"conformance.cases", "conformance.contract", "conformance.pages"},
    "conformance.report": {"conformance.outcome"},
    "conformance.report.run": JUDGING | {"conformance.abi", "conformance.report"},
    "conformance.report.screen": RUN_AND_BELOW,
    "conformance.report.export": RUN_AND_BELOW | {"conformance.schema"},
    "conformance.report.history": RUN_AND_BELOW,
    "conformance.report.comparison": RUN_AND_BELOW | JUDGING | {"conformance.report.history"},
    "conformance.report.matrix": RUN_AND_BELOW
    | {"conformance.abi", "conformance.cases", "conformance.pages", "conformance.schema"},
    "conformance.report_command": {"conformance.contract", "conformance.report", "kernels"}
    | {"conformance.report.matrix"},
    "conformance.options": {"conformance.report"},
    "conformance.resuming": RUN_AND_BELOW | {"conformance.options"},
    "conformance.plugin": BELOW_PLUGIN
    | {"conformance.options", "conformance.resuming", "kernels", "vm"},
    "conformance.compare_command": RUN_AND_BELOW
    | {"conformance.report.comparison", "conformance.report.history", "kernels"},
    "conformance.history_command": {"conformance.report", "conformance.report.history"},
    "conformance.expectations_command": {
        *("conformance.abi", "conformance.contract", "conformance.specification"),
        *("conformance.expectations", "conformance.report", "conformance.report.run", "kernels"),
    },
    "conformance.against": RUN_AND_BELOW
    | {"conformance.compare_command", "conformance.plugin", "conformance.report.export"}
    | {"conformance.sessions"},
    "conformance.sessions": {"conformance.options", "conformance.report", "kernels", "vm"}
    | {"conformance.report.export", "conformance.pytest_session"},
    "conformance.pytest_session": {"conformance.plugin", "conformance.report"},
    "conformance.kernel_commands": {"conformance.report", "kernels"},
    "conformance.export_command": RUN_AND_BELOW | {"conformance.report.export"},
    "conformance.bisect_judge": {"conformance.abi", "conformance.cases", "conformance.contract"}
    | {"conformance.options", "conformance.sessions", "conformance.specification", "kernels"}
    | RUN_AND_BELOW,
    "conformance.bisect_walk": {"conformance.bisect_judge", "conformance.report", "kernels"},
    "conformance.bisect_command": {"conformance.bisect_judge", "conformance.bisect_walk"}
    | {"conformance.report", "conformance.report.run", "conformance.sessions", "kernels"},
    "conformance.doctor_command": {"conformance.plugin", "conformance.report"},
    "conformance.run_command": {"conformance.against", "conformance.options", "conformance.report"}
    | {"conformance.plugin", "conformance.resuming", "conformance.sessions", "kernels"}
    | {"conformance.report.export"},
    # Commands are imported by their names, once they are asked for.
    "conformance.cli": {"conformance.report", "kernels"},
    "kernels": set(),
    # The guest's half runs without a host around it; the channel's framing is shared.
    "vm.guest": {"vm.wire"},
    "vm.wire": set(),
    "vm": {"vm.guest", "vm.wire"},
}

# `uevt kernels path` is meant for scripts and answers in a fraction of a second.
SLOW_TO_IMPORT = {"hypothesis", "pexpect", "pytest", "rich", "xdist"}


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement of one module."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line}: imports {self.imported}"


def modules() -> Iterator[tuple[str, Path]]:
    """(dotted name, file) of every module of the three packages."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def imports_of(name: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """All imports in a module's source, those in functions and for type checkers included."""
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            for alias in node.names:
                # `from vm import wire` names a module, `from vm.wire import Frame` does not.
                deeper = f"{base}.{alias.name}"
                yield Import(name, deeper if is_module(deeper) else base, node.lineno)


def is_module(name: str) -> bool:
    """Whether a dotted name is a module or package of ours."""
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def room_of(module: str) -> str | None:
    """The room a module of ours belongs to."""
    rooms = [room for room in MAY_IMPORT if module == room or module.startswith(f"{room}.")]
    return max(rooms, key=len, default=None)


@cache
def all_imports() -> tuple[Import, ...]:
    """Every import statement in the three packages."""
    return tuple(
        found
        for name, file in modules()
        for found in imports_of(name, file.read_text(), is_package=file.name == "__init__.py")
    )


def top(module: str) -> str:
    """The first part of a dotted name."""
    return module.partition(".")[0]


def forbidden(found: Import) -> bool:
    """Whether an import leads anywhere but to its own room and those below it."""
    if top(found.imported) not in PACKAGES:
        return False
    importer, imported = room_of(found.importer), room_of(found.imported)
    if importer is None:
        return found.imported != found.importer
    return imported != importer and imported not in MAY_IMPORT[importer]


def test_every_module_has_a_room() -> None:
    # conformance/__init__.py is the entrance hall: it holds a docstring and no imports.
    homeless = [name for name, _ in modules() if room_of(name) is None and name != "conformance"]
    assert homeless == []


def test_imports_point_downward_only() -> None:
    wrong = [str(i) for i in all_imports() if forbidden(i)]
    assert wrong == []


@pytest.mark.parametrize(
    ("package", "stranger"),
    [("vm", "conformance"), ("vm", "kernels"), ("kernels", "conformance"), ("kernels", "vm")],
)
def test_vm_and_kernels_know_neither_conformance_nor_each_other(
    package: str, stranger: str
) -> None:
    made = [i for i in all_imports() if top(i.importer) == package]
    assert made, f"no import statement found in {package}: the walk is broken"
    wrong = [str(i) for i in made if top(i.imported) == stranger]
    assert wrong == []


def test_the_guest_needs_only_the_standard_library() -> None:
    allowed = {*sys.stdlib_module_names, "vm"}
    wrong = [
        str(i)
        for i in all_imports()
        if room_of(i.importer) in {"vm.guest", "vm.wire"} and top(i.imported) not in allowed
    ]
    assert wrong == []


def test_kernels_is_quick_to_import() -> None:
    wrong = [
        str(i)
        for i in all_imports()
        if top(i.importer) == "kernels" and top(i.imported) in SLOW_TO_IMPORT
    ]
    assert wrong == []


def test_every_package_says_what_lives_there() -> None:
    silent = []
    for directory in sorted({file.parent for _, file in modules()}):
        entrance = directory / "__init__.py"
        docstring = ast.get_docstring(ast.parse(entrance.read_text())) if entrance.exists() else ""
        if not docstring:
            silent.append(str(entrance.relative_to(ROOT)))
    assert silent == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("conformance.model.events", "conformance.sut.lockstep"),
        ("conformance.abi.layouts", "conformance.program.operations"),
        ("conformance.runner", "vm.machine"),
        ("conformance.cases.test_write", "conformance.plugin"),
        ("conformance.report.screen.terminal", "conformance.runner"),
        ("conformance.report.text", "conformance.report.run.record"),
        ("conformance.report.run.rundir", "conformance.report.export.ktap"),
        ("conformance.report.export.github", "conformance.report.screen.terminal"),
        ("conformance.report.history.store", "conformance.report.comparison.compare"),
        ("conformance.options", "conformance.report.matrix.html"),
        ("vm.guest.agent", "vm.machine"),
        ("conformance.unheard_of", "conformance.abi.layouts"),
    ],
)
def test_an_arrow_upward_is_seen(importer: str, imported: str) -> None:
    assert forbidden(Import(importer, imported, line=1))


def test_imports_are_found_wherever_they_stand() -> None:
    source = """
from .. import abi
from ..program.operations import Operation
def late():
    import vm.machine as machine
"""
    found = [i.imported for i in imports_of("conformance.model.events", source)]
    assert found == ["conformance.abi", "conformance.program.operations", "vm.machine"]
