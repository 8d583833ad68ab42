"""Write the collection: run.sh, its settings, the suite, and a Python that runs it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from conformance.cli.install.interpreter import FILES, VERSION, copy_interpreter, output_of
from conformance.cli.install.modules import OURS, ROOT, Module, needed_modules
from conformance.session.controller.run_head import REVISION, suite_revision
from vm.guest import LIBRARY
from vm.qemu.guest_files import compile_native

COLLECTION = "uevt"
#: Files of ours that are read and are no modules.
_DATA = (
    *("pyproject.toml", "COPYING", "conformance/allowed_reports/*.toml"),
    *("kernels/catalog/*.toml", "kernels/variants/*", "fixtures/definitions.toml"),
    *("conformance/repro/c/*", "conformance/session/durations.toml", "docs/frozen/*"),
    "vm/guest/native/*",
)
_ENGINE = f"vm/guest/{LIBRARY}"
_CONFIG = "kernels/config/user_events.config"


def write_collection(directory: Path) -> None:
    """Write the collection to a directory that does not exist.  Raises HostTrouble, OSError."""
    compile_native()
    modules = needed_modules()
    suite, python = directory / "suite", directory / "python"
    standard = [each for each in modules if each.is_standard]
    added = [each for each in modules if not each.is_ours and not each.is_standard]
    native = [each.file for each in added if each.is_native]
    copy_interpreter(python, standard, [ROOT / _ENGINE, *native])
    _copy_suite(suite, [each for each in modules if each.is_ours])
    packages = suite / "packages"
    _copy_modules(packages, added)
    _describe(packages)
    shutil.copy(FILES / "run.sh", directory / "run.sh")
    shutil.copy(FILES / "settings", directory / "settings")
    shutil.copy(ROOT / _CONFIG, directory / "config")
    (directory / "run.sh").chmod(0o755)
    sourceless = [python / "lib" / VERSION, packages]
    _compile(directory, sourceless, "-b")
    _compile(directory, [*(suite / name for name in OURS), suite / "__main__.py"])
    for each in sourceless:
        for source in each.rglob("*.py"):
            source.unlink()
    _check(directory)


def _copy_suite(suite: Path, modules: Iterable[Module]) -> None:
    _copy_modules(suite, modules)
    shutil.copyfile(FILES / "start", suite / "__main__.py")
    data = [file for pattern in _DATA for file in sorted(ROOT.glob(pattern))]
    for source in (*data, ROOT / _ENGINE):
        target = suite / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    (suite / REVISION).write_text(f"{suite_revision()}\n")


def _copy_modules(directory: Path, modules: Iterable[Module]) -> None:
    for module in modules:
        target = directory / module.place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module.file, target)


def _describe(packages: Path) -> None:
    """What pytest and `uevt --version` ask importlib.metadata for."""
    ours = distribution(COLLECTION)
    about = packages / f"{COLLECTION}-{ours.version}.dist-info"
    about.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {COLLECTION}\nVersion: {ours.version}\n"
    (about / "METADATA").write_text(head)
    (about / "entry_points.txt").write_text(ours.read_text("entry_points.txt") or "")


def _compile(directory: Path, parts: Iterable[Path], *options: str) -> None:
    """Write byte-code that depends neither on times nor on this process.  Raises HostTrouble."""
    command = [sys.executable, "-m", "compileall", "-q", "-f", "-s", str(directory)]
    command += ["--invalidation-mode", "unchecked-hash", *options, *map(str, parts)]
    output_of(command, "no byte-code", "report it", {**os.environ, "PYTHONHASHSEED": "0"})


def _check(directory: Path) -> None:
    """Raise HostTrouble unless it starts where nothing of the system is found."""
    output_of(
        [directory / "run.sh", "--version"],
        "the copy does not start",
        env={"PATH": os.defpath},
        cwd="/",
    )
