"""Find the cases: every `test_*.py` below this package, in the order of dotted names."""

import importlib
import pkgutil
from types import ModuleType

import conformance.cases
from conformance.cases.case import Case, declared


def case_modules() -> list[ModuleType]:
    """The modules with cases, in the order of their names."""
    package = conformance.cases
    names = sorted(
        found.name
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if found.name.rpartition(".")[2].startswith("test_")
    )
    return [importlib.import_module(name) for name in names]


def all_cases() -> list[Case]:
    """All declared cases."""
    found = [
        declared(each)
        for module in case_modules()
        for each in vars(module).values()
        if getattr(each, "__module__", None) == module.__name__
    ]
    return [case for case in found if case is not None]
