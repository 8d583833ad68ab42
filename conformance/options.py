"""The options of a run: what pytest and the command `uevt run` have in common, said once."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from conformance.report.exits import ExitStyle

# Options of one value, of several, and of none.
_VALUES = ("image", "modules", "tree", "ref", "abi", "flavour", "tier", "out", "exit_style")
_LISTS = ("patch", "config", "append")
_FLAGS = ("force", "require")
# Those that name files, from where the user is.
_PATHS = ("image", "modules", "tree", "out", "patch", "config")


def declare(add: Callable[..., object]) -> None:
    """Declare all of them to argparse's ``add_argument``, or pytest's ``addoption``."""
    several = {"action": "append", "default": []}
    add("--image", metavar="FILE", help="a bzImage of your own in the place of --kernel")
    add("--modules", metavar="DIR", help="the modules of --image: lib/modules/RELEASE")
    add("--tree", metavar="DIR", help="a kernel tree of your own, which is only read")
    add("--ref", metavar="REF", help="a commit of --tree's repository in the place of its files")
    add("--patch", metavar="FILE", help="a change to make to the kernel's source", **several)
    add("--config", metavar="FILE", help="configuration lines to add", **several)
    add("--flavour", metavar="F", help="debug, gcov or fault: a kernel that checks more")
    add("--abi", metavar="A", help="judge by another ABI: 6.8, byte-status or 6.8,SWITCH=no")
    add("--append", metavar="ARGS", help="kernel arguments to add", **several)
    add("--tier", choices=["quick", "full"], default="quick", help="quick (the default) or full")
    add("--out", metavar="DIR", help="where results go (default: results/<kernel id>/<UTC stamp>)")
    add("--force", action="store_true", help="replace the results in --out")
    styles = [style.value for style in ExitStyle]
    add("--exit-style", choices=styles, default="default", help="whose exit codes to use")
    add("--require", action="store_true", help="a kernel without user_events is a failure")


def make_absolute(options: Namespace) -> None:
    """Let options that name files do so from any directory."""
    for name in _PATHS:
        given = getattr(options, name)
        if isinstance(given, list):
            setattr(options, name, [str(Path(each).absolute()) for each in given])
        elif given is not None:
            setattr(options, name, str(Path(given).absolute()))


def words(options: Namespace) -> list[str]:
    """The same options as words of a command line."""
    found = []
    for name in (*_VALUES, *_LISTS):
        given = getattr(options, name)
        for value in given if isinstance(given, list) else [given]:
            if value is not None:
                found.append(f"--{name.replace('_', '-')}={value}")
    return found + [f"--{name}" for name in _FLAGS if getattr(options, name)]
