"""The order of the floors: imports point downward only, and never in a circle."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("host", "kernels", "vm", "conformance")

# Rooms from the ground up.  A room imports rooms of lower floors only.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("host", "conformance.abi"),
    ("kernels", "vm", "conformance.ops", "conformance.results"),
    ("conformance.model", "conformance.allowed_reports"),
    ("conformance.client",),
    ("conformance.cases", "conformance.listing", "conformance.repro"),
    ("conformance.runner", "conformance.report", "conformance.programs"),
    ("conformance.session",),
    ("conformance.cli",),
)
FLOOR = {room: number for number, floor in enumerate(FLOORS, 1) for room in floor}

# Folders and top-level modules of the model from the ground up: each imports only earlier ones.
MODEL = (
    *("errors", "answers", "memory", "text", "bpf", "state"),
    *("tracing", "user_events", "tracefs", "syscalls", "machine"),
)
MOST_FLOORS = 8


class Import(Struct, frozen=True):
    """One import statement of one module."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line}: imports {self.imported}"


@cache
def modules() -> Mapping[str, Path]:
    """Dotted name to file, for every module and package."""
    found = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports_of(name: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """All imports in a source, those in functions and under TYPE_CHECKING included."""
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
                yield Import(name, deeper if deeper in modules() else base, node.lineno)


@cache
def all_imports() -> tuple[Import, ...]:
    """Every import of a module of ours by another."""
    return tuple(
        found
        for name, file in modules().items()
        for found in imports_of(name, file.read_text(), is_package=file.name == "__init__.py")
        if found.imported != name
    )


def room_of(module: str) -> str | None:
    """The room that a module belongs to; None if it is not ours or belongs to no room."""
    return next((r for r in FLOOR if module == r or module.startswith(f"{r}.")), None)


def forbidden(found: Import) -> bool:
    """Whether an import leaves its room in any direction but down."""
    importer, imported = room_of(found.importer), room_of(found.imported)
    if imported is None:
        return found.imported.partition(".")[0] in PACKAGES
    return importer != imported and (importer is None or FLOOR[importer] <= FLOOR[imported])


def circle(arrows: Mapping[str, Set[str]]) -> list[str]:
    """One circle in a graph, or nothing."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def chain(arrows: Mapping[str, Set[str]]) -> list[str]:
    """The longest way downward in a graph without circles."""
    below: dict[str, list[str]] = {}
    for part in TopologicalSorter(arrows).static_order():
        ways = (below[lower] for lower in arrows.get(part, ()))
        below[part] = [part, *max(ways, key=len, default=[])]
    return max(below.values(), key=len, default=[])


def parts_of(package: str) -> dict[str, str]:
    """What a package contains: each module below it, and its folder or file in the package."""
    inside = f"{package}."
    return {
        name: name.removeprefix(inside).partition(".")[0]
        for name in modules()
        if name.startswith(inside)
    }


def arrows_between(parts: Mapping[str, str]) -> dict[str, set[str]]:
    """The graph of imports after renaming each module to its part; unnamed modules are left out."""
    arrows: dict[str, set[str]] = {part: set() for part in parts.values()}
    for found in all_imports():
        importer, imported = parts.get(found.importer), parts.get(found.imported)
        if importer and imported and importer != imported:
            arrows[importer].add(imported)
    return arrows


PACKAGES_OF_ALL_LEVELS = sorted(
    name for name, file in modules().items() if file.name == "__init__.py"
)


def test_every_module_has_a_room() -> None:
    homeless = [name for name in modules() if room_of(name) is None and name != "conformance"]
    assert homeless == []


def test_imports_point_downward_only() -> None:
    assert [str(i) for i in all_imports() if forbidden(i)] == []


def test_no_circle_of_modules() -> None:
    assert circle(arrows_between({name: name for name in modules()})) == []


@pytest.mark.parametrize("package", PACKAGES_OF_ALL_LEVELS)
def test_no_circle_of_folders(package: str) -> None:
    assert circle(arrows_between(parts_of(package))) == []


@pytest.mark.parametrize("package", PACKAGES_OF_ALL_LEVELS)
def test_no_package_has_more_than_eight_floors(package: str) -> None:
    """Floors are the longest chain of imports among what stands directly in one folder.

    That is what a reader draws: the folders and files of a room, and then those of each folder.
    A chain of modules through several folders is longer, and is not drawn anywhere.
    """
    found = chain(arrows_between(parts_of(package)))
    assert len(found) <= MOST_FLOORS, " imports ".join(found)


def test_folders_of_the_model_are_in_order() -> None:
    place = {name: number for number, name in enumerate(MODEL)}
    wrong = []
    for found in all_imports():
        importer, imported = (_folder_of_model(each) for each in (found.importer, found.imported))
        if importer in place and imported in place and place[importer] < place[imported]:
            wrong.append(str(found))
    assert wrong == []


def _folder_of_model(module: str) -> str:
    return module.removeprefix("conformance.model.").partition(".")[0]


@pytest.mark.parametrize("package", ["kernels", "vm"])
def test_kernels_and_vm_import_only_host(package: str) -> None:
    """Each is an interface of its own."""
    made = [i for i in all_imports() if i.importer.partition(".")[0] == package]
    assert made, f"no import statement found in {package}"
    others = {*PACKAGES} - {package, "host"}
    assert [str(i) for i in made if i.imported.partition(".")[0] in others] == []


def test_the_guest_needs_only_the_standard_library() -> None:
    guest = [i for i in all_imports() if i.importer.startswith(("vm.guest", "vm.wire"))]
    assert guest
    allowed = {*sys.stdlib_module_names}
    wrong = [
        str(i)
        for i in guest
        if i.imported.partition(".")[0] not in allowed
        and not i.imported.startswith(("vm.guest", "vm.wire"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("conformance.model.state.events", "conformance.client.lockstep"),
        ("conformance.abi.uapi", "conformance.ops.operation"),
        ("conformance.results.directory", "conformance.report.export.ktap"),
        ("conformance.report.failure", "conformance.runner.runner"),
        ("conformance.cases.write.test_write", "conformance.session.plugin"),
        ("vm.machine", "kernels.errors"),
        ("host.text", "kernels.errors"),
        ("conformance.abi.uapi", "conformance.unheard_of"),
    ],
)
def test_an_arrow_upward_is_seen(importer: str, imported: str) -> None:
    assert forbidden(Import(importer, imported, line=1))


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_floors_are_counted() -> None:
    assert chain({"a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set()}) == ["a", "b", "c"]
    assert chain({}) == []


def test_imports_are_found_wherever_they_stand() -> None:
    source = """
from typing import TYPE_CHECKING
from .. import abi
from ..ops.operation import Operation
if TYPE_CHECKING:
    from conformance.client import lockstep
def late():
    import vm.machine as machine
"""
    found = {i.imported for i in imports_of("conformance.model.events", source)}
    assert found == {
        *("typing", "conformance.abi", "conformance.ops.operation"),
        *("conformance.client.lockstep", "vm.machine"),
    }
