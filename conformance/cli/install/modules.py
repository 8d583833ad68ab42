"""The modules that a run on the running kernel can import: ours, packages, standard library."""

from __future__ import annotations

import sys
from modulefinder import ModuleFinder
from pathlib import Path

import _pytest
from msgspec import Struct

import conformance.cases
import vm.guest

ROOT = Path(__file__).parents[3]
OURS = ("conformance", "host", "kernels", "vm")

#: What is imported by `uevt run --here`; the rest follows.
_ENTRIES = (
    *("conformance.cli.main", "conformance.cli.run", "conformance.session.plugin"),
    *("vm.guest.here", "_pytest", "pytest"),
)
#: Packages whose modules are imported by name.
_WHOLE = (conformance.cases, vm.guest, _pytest)
#: Codecs are imported by name.
_CODECS = (
    *("aliases", "ascii", "cp437", "idna", "latin_1", "raw_unicode_escape", "unicode_escape"),
    *("utf_16", "utf_16_be", "utf_16_le", "utf_8", "utf_8_sig"),
)
#: Modules that are imported in functions which such a run never calls, or only if they are there.
_LEFT_OUT = (
    # Guests, and kernels to build.
    *("virtme", "qemu", "pexpect", "ptyprocess"),
    # report.html: results.json has all of its content.
    *("jinja2", "markdown_it", "markupsafe", "mdurl"),
    # Plugins and options of pytest that are switched off.
    *("xdist", "hypothesis", "argcomplete", "attr", "doctest", "unittest"),
    *("pkg_resources", "setuptools", "_distutils_hack", "exceptiongroup", "tomli"),
    # Development, documentation, terminals and the network.
    *("pydoc", "pydoc_data", "test", "idlelib", "lib2to3", "tkinter", "turtle", "ensurepip"),
    *("distutils", "curses", "readline", "rlcompleter", "shtab", "rich"),
    *("asyncio", "ssl", "_ssl", "http", "ftplib", "smtplib", "xmlrpc", "sqlite3"),
    *("urllib.request", "urllib.error", "mimetypes", "typing_extensions", "concurrent"),
    # hashlib has digests of its own; these need libcrypto.
    "_hashlib",
    # Python versions of modules in C.
    *("_pydecimal", "_pydatetime", "_pyio", "_strptime_c"),
)


class Module(Struct, frozen=True):
    """A module in a file of its own: byte-code or a shared library."""

    name: str
    file: Path

    @property
    def is_ours(self) -> bool:
        """Whether it is part of this suite."""
        return self.name.partition(".")[0] in OURS

    @property
    def is_standard(self) -> bool:
        """Whether it is part of the standard library."""
        return self.name.partition(".")[0] in sys.stdlib_module_names

    @property
    def is_native(self) -> bool:
        """Whether it is a shared library."""
        return self.file.suffix == ".so"

    @property
    def place(self) -> Path:
        """Its file relative to a directory of sys.path."""
        parts = self.name.split(".")
        if self.file.stem == "__init__":
            parts.append("__init__")
        return Path(*parts[:-1], self.file.name)


def needed_modules() -> list[Module]:
    """The modules in the order of their names."""
    finder = ModuleFinder(path=[str(ROOT), *sys.path], excludes=list(_LEFT_OUT))
    for name in (*_ENTRIES, *_by_name(), *(f"encodings.{codec}" for codec in _CODECS)):
        finder.import_hook(name)
    return [
        Module(name, Path(file))
        for name, each in sorted(finder.modules.items())
        if (file := getattr(each, "__file__", None)) is not None
    ]


def _by_name() -> list[str]:
    return [
        ".".join((package.__name__, *file.relative_to(directory).with_suffix("").parts))
        for package in _WHOLE
        for directory in map(Path, package.__path__)
        for file in sorted(directory.rglob("*.py"))
    ]
