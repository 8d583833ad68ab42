"""Options of a run, shared by the pytest plugin and `uevt run`."""

from __future__ import annotations

import functools
import os
import re
from argparse import ArgumentError, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from conformance.results.errors import ReportError
from conformance.results.exit_codes import ExitStyle
from conformance.results.frozen import located
from conformance.results.outcome import Level
from conformance.results.shard import path
from host.files import read_given
from kernels.errors import BrokenFile
from kernels.store.store import Store

# Options with one value, with several, and without.
_VALUES = (
    *("image", "modules", "tree", "ref", "abi", "flavour"),
    *("tier", "isolation", "repeat", "shuffle", "deadline", "out", "exit_style", "ktap", "resume"),
    *("fail_on", "frozen", "shard"),
)
_LISTS = ("only", "patch", "config", "module", "append")
_FLAGS = ("force", "require", "here", "even_so")
# Options that name files.
_PATHS = ("image", "modules", "tree", "out", "patch", "config", "module", "ktap", "resume")
# Values of options that are not given; see ``apply_defaults``.
_DEFAULTS = {"isolation": "need", "exit_style": ExitStyle.DEFAULT.value}
# Options that name a kernel of the user: its judgement has to be trusted, so every case runs.
_OWN_KERNEL = ("image", "tree", "ref", "patch", "here")
# Options about output and time, which do not identify a run.
_NOT_PART_OF_RUN: dict[str, object] = {
    **dict.fromkeys(("out", "ktap", "resume", "deadline")),
    "force": False,
}
# Options that name the kernel.
_KERNELS = ("kernel", "image", "tree", "here")
# Titles of the groups of options.
KERNEL, CASES, VERDICT, OUTPUT = "kernel", "cases", "verdict", "output"
# The function that adds an option to the group of a title.
Groups = Callable[[str], Callable[..., object]]
# The name for standard output.
STDOUT = "-"
# An inherited descriptor.  Opening it by this name fails for a socket and truncates a file.
_DESCRIPTOR = re.compile(r"/dev/fd/(\d+)")

_TIER = "quick or full (default: full with --patch, --tree, --ref, --image or --here, else quick)"
_ISOLATION = "a new guest when a case needs one (the default), or before every case"
_FAIL_ON = (
    "weakest level of a deviation that fails the run: contract, behaviour or detail (default: "
    "detail for an unchanged kernel of the catalog, else contract)"
)
_ONLY = "only this case, by its whole id (default tier: full)"
_FROZEN = "only the cases of a frozen list: a version in docs/frozen, or a file"
_SHARD = "only part I of N of the cases; uevt merge joins the parts"
_REPEAT = "run each case up to N times, until one run deviates (with -k CASE: find flakes)"


def groups_of(parser: ArgumentParser) -> Groups:
    """The groups of a parser by title, each created by its first use."""

    @functools.cache
    def group(title: str) -> Callable[..., object]:
        return parser.add_argument_group(title).add_argument

    return group


def declare(group: Groups) -> None:
    """Declare all options; ``group`` gives argparse's ``add_argument`` or pytest's ``addoption``
    for the title of a group.
    """
    declare_kernel(group)
    declare_here(group)
    about = "a module to load, its source or a .ko"
    group(KERNEL)("--module", metavar="DIR", action="append", default=[], help=about)
    add = group(CASES)
    add("--tier", choices=["quick", "full"], help=_TIER)
    add("--only", metavar="ID", action="append", default=[], help=_ONLY)
    add("--frozen", metavar="LIST", help=_FROZEN)
    add("--shard", type=_part, metavar="I/N", help=_SHARD)
    add("--isolation", choices=["need", "case"], help=_ISOLATION)
    add("--repeat", type=_count, metavar="N", help=_REPEAT)
    add("--shuffle", type=int, metavar="SEED", help="run the cases in random order")
    add("--deadline", type=seconds, metavar="SECONDS", help="start no case after this time")
    declare_verdict(group)
    add = group(VERDICT)
    add("--require", action="store_true", help="fail on a kernel without user_events")
    styles = [style.value for style in ExitStyle]
    about = "exit codes of kselftest, autopkgtest, git bisect or LTP"
    add("--exit-style", choices=styles, help=about)
    add = group(OUTPUT)
    add("--out", metavar="DIR", help="results directory (default: results/<kernel id>/<UTC stamp>)")
    add("--force", action="store_true", help="replace the results in --out")
    add("--resume", metavar="DIR", help="resume the run in DIR, which was killed")
    add("--ktap", metavar="FILE", help="KTAP as cases end, to a file or - for standard output")


def declare_verdict(group: Groups) -> None:
    """Declare the options of what a kernel is judged by."""
    add = group(VERDICT)
    add("--abi", metavar="A", help="judge by another ABI: 6.8, byte-status or 6.8,SWITCH=no")
    levels = [level.value for level in Level]
    add("--fail-on", choices=levels, help=_FAIL_ON)


def default_options(**given: object) -> Namespace:
    """The options of a run to which only these were given."""
    parser = ArgumentParser()
    declare(groups_of(parser))
    return replaced(parser.parse_args([]), **given)


def replaced(options: Namespace, **others: object) -> Namespace:
    """A copy of options with other values."""
    return Namespace(**{**vars(options), **others})


def declare_kernel(group: Groups) -> None:
    """Declare the options that name and change the kernel."""
    add = group(KERNEL)
    add("--image", metavar="FILE", help="a bzImage of your own, instead of --kernel")
    add("--modules", metavar="DIR", help="the modules of --image: lib/modules/RELEASE")
    declare_build(group)


def declare_build(group: Groups) -> None:
    """Declare the options of a kernel that is built."""
    several = {"action": "append", "default": []}
    add = group(KERNEL)
    add("--tree", metavar="DIR", help="your kernel tree, which is only read")
    add("--ref", metavar="REF", help="a commit of --tree's repository, instead of its files")
    add("--patch", metavar="FILE", help="a patch for the kernel source; may be repeated", **several)
    add("--config", metavar="FILE", help="configuration lines to add; may be repeated", **several)
    add("--flavour", metavar="F", help="debug, gcov or fault: a kernel that checks more")
    add("--append", metavar="ARGS", help="kernel arguments to add", **several)


def declare_here(group: Groups) -> None:
    """Declare the options for the running kernel."""
    add = group(KERNEL)
    about = "the running kernel, instead of --kernel"
    add("--here", action="store_true", default=None, help=about)
    about = "with --here: run although other programs have user events"
    add("--even-so", action="store_true", default=None, help=about)


def apply_defaults(options: Namespace) -> None:
    """Set the defaults of options that were not given.

    Called after a resumed run has filled in its own.
    """
    for name, value in _DEFAULTS.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    own = any(getattr(options, name, None) for name in _OWN_KERNEL)
    if options.tier is None:
        options.tier = "full" if own or options.only else "quick"
    if options.fail_on is None:
        changed = own or options.config or options.module
        options.fail_on = (Level.CONTRACT if changed else Level.DETAIL).value


def command_words(options: Namespace) -> tuple[str, ...]:
    """These options as words of `uevt run`."""
    named = [f"--kernel={options.kernel}"] if options.kernel is not None else []
    named += [f"-k={options.keyword}"] if options.keyword else []
    return (*named, *words(replaced(options, **_NOT_PART_OF_RUN)))


def value_of(option: str, words_given: Sequence[str]) -> str:
    """The values of an option among ``command_words``, "" if it was not given."""
    given = [word for word in words_given if word.startswith(f"{option}=")]
    return " ".join(word.partition("=")[2] for word in given)


def fill_missing(options: Namespace, words_given: Sequence[str]) -> None:
    """Fill options that were not given from ``command_words``.  Raises ValueError."""
    found = _parsed(words_given)
    kernel_given = any(getattr(options, name, None) is not None for name in _KERNELS)
    for name, value in vars(found).items():
        unset = _is_given(value) and not _is_given(getattr(options, name))
        if unset and not (kernel_given and name in _KERNELS):
            setattr(options, name, value)


def _is_given(value: object) -> bool:
    """Whether an option has this value because it was given: the seed 0 is."""
    return bool(value) or type(value) is int


def _parsed(words_given: Sequence[str]) -> Namespace:
    parser = ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--kernel")
    parser.add_argument("-k", dest="keyword", default="")
    declare(groups_of(parser))
    try:
        found, unknown = parser.parse_known_args(list(words_given))
    except ArgumentError as error:
        raise ValueError(str(error)) from error
    if unknown:
        raise ValueError(f"{unknown[0]} is no option")
    return found


def _count(text: str) -> int:
    """A number of runs.  Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _part(text: str) -> str:
    """The name of a shard.  Raises ArgumentTypeError."""
    try:
        path(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return text


def seconds(text: str) -> float:
    """A time in seconds.  Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def make_absolute(options: Namespace) -> None:
    """Make the files that options name absolute.  A version becomes its frozen list.

    Raises BrokenFile for a pipe that cannot be read, StoreUnusable, StoreFull.
    """
    # Only runs have this option.
    if getattr(options, "frozen", None) is not None:
        options.frozen = str(Path(located(options.frozen)).absolute())
    for name in _PATHS:
        given = getattr(options, name)
        if isinstance(given, list):
            setattr(options, name, [lasting(Path(each).absolute()) for each in given])
        elif given not in (None, STDOUT):
            setattr(options, name, str(Path(given).absolute()))


def lasting(path: Path) -> str:
    """A file; for a pipe, such as <(git diff), a copy, which can be read again.

    Raises BrokenFile, StoreUnusable, StoreFull.
    """
    if not path.is_fifo():
        return str(path)
    try:
        content = read_given(path)
    except OSError as error:
        raise BrokenFile(path, error.strerror or str(error), "name a readable file") from error
    return str(Store().keep_given(content))


def words(options: Namespace) -> list[str]:
    """The declared options as words of a command line."""
    found = []
    for name in (*_VALUES, *_LISTS):
        given = getattr(options, name)
        for value in given if isinstance(given, list) else [given]:
            if value is not None:
                found.append(f"--{name.replace('_', '-')}={value}")
    return found + [
        f"--{name.replace('_', '-')}" for name in _FLAGS if getattr(options, name, None)
    ]


def descriptors(options: Namespace) -> tuple[int, ...]:
    """Descriptors that a process with these options inherits."""
    found = _DESCRIPTOR.fullmatch(options.ktap or "")
    return (int(found[1]),) if found else ()


def open_ktap(name: str | None) -> TextIO | None:
    """The file of --ktap, or None.  Raises ReportError."""
    if name is None:
        return None
    if name == STDOUT:
        what = "pytest itself writes to standard output"
        raise ReportError(Path("--ktap -"), what, "give it to uevt run")
    try:
        if handed_down := _DESCRIPTOR.fullmatch(name):
            return os.fdopen(int(handed_down[1]), "w", encoding="utf-8")
        return Path(name).open("w", encoding="utf-8")
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise ReportError(Path(name), what, "name a file, or - for standard output") from error
