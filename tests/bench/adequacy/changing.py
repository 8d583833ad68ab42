"""Make a change of the model act in this process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from msgspec import Struct

from tests.bench.adequacy.mutants import Mutant, mutated

ROOT = Path(__file__).parents[3]
# Imported again where a value at import is changed.
_ANEW = ("conformance", "tests.bench.adequacy.re")


class Change(Struct, frozen=True):
    """A mutant of a file, or a switch that is flipped on a kernel.

    ``cases`` are the kernels and ids of those that can notice it, in the order to try them.
    """

    where: str
    mutant: Mutant | None
    cases: Sequence[tuple[str, str]]
    switch: str = ""

    def __str__(self) -> str:
        if self.mutant is None:
            return f"{self.where}: {self.switch}"
        place = f"{self.where}:{self.mutant.lines.start} {self.mutant.function}".rstrip()
        return f"{place} {self.mutant.text}"

    def act(self) -> None:
        """Change the model.  Modules are to be imported after it.

        Raises what the changed module raises when it is imported.
        """
        if self.mutant is None:
            return
        file = ROOT / self.where
        code = compile(mutated(file.read_text(), self.mutant.number), str(file), "exec")
        name = self.where.removesuffix(".py").replace("/", ".")
        if self.mutant.function:
            changed = ModuleType(name)
            exec(code, changed.__dict__)
            before = dict(_functions(vars(importlib.import_module(name)), name))
            for place, function in _functions(vars(changed), name):
                before[place].__code__ = function.__code__
            return
        for each in [each for each in sys.modules if each.startswith(_ANEW)]:
            del sys.modules[each]
        sys.meta_path.insert(0, _Importer(name, file, code))


def _functions(
    names: Mapping[str, object], module: str, below: str = ""
) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods of a module."""
    for name, value in names.items():
        if getattr(value, "__module__", None) != module:
            continue
        if isinstance(value, FunctionType):
            yield f"{below}{name}", value
        elif isinstance(value, type):
            yield from _functions(vars(value), module, f"{name}.")


class _Importer(Struct, frozen=True):
    """Imports one module from other code."""

    name: str
    file: Path
    code: CodeType

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """The changed module; None for any other."""
        if name != self.name:
            return None
        return spec_from_file_location(name, self.file, loader=self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Not special."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute the changed code."""
        exec(self.code, module.__dict__)
