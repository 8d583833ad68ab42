"""`uevt kernels`: list, build, locate and garbage-collect the kernels of the catalog.

`uevt kernels source` names their source trees.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence

from conformance.cli.output import print_json
from conformance.results.exit_codes import Ending, exit_code
from host.progress import StreamProgress, silent
from host.text import wrapped
from kernels.build.availability import State, survey
from kernels.build.build import ensure
from kernels.build.gc import Bound, collect, in_mib
from kernels.catalog.catalog import VARIANTS, Catalog, load_catalog
from kernels.catalog.entries import KernelEntry
from kernels.errors import MissingTool, SourceUnavailable
from kernels.sources.unpacked import SourceTrees
from kernels.store.store import Store

_HOW_TO_PATCH = "builds read these trees: edit a copy of a file, and make the patch with diff -u"


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb, perform, text in (
        ("list", _list, "all kernels: built, buildable, or why not"),
        ("build", _build, "build kernels that are not in the store"),
        ("path", _path, "print the bzImage of built kernels"),
        ("source", _source, "print the source trees that patches are for"),
    ):
        command = verbs.add_parser(verb, help=text)
        every = "all kernels" if verb == "list" else "the default kernels"
        about = f"a name of the catalog, such as 6.12 (default: {every})"
        command.add_argument("kernel", nargs="*", metavar="KERNEL", help=about)
        command.set_defaults(perform=perform)
        if verb == "list":
            form = command.add_mutually_exclusive_group()
            form.add_argument("--json", action="store_true", help="print JSON")
            about = "only names of built or buildable kernels (of KERNEL…, or the default ones)"
            form.add_argument("--buildable", action="store_true", help=about)
        if verb == "build":
            command.add_argument("--refresh", action="store_true", help="look for newer revisions")
    gc = verbs.add_parser("gc", help="garbage-collect the build store, least recently used first")
    bound = gc.add_mutually_exclusive_group()
    bound.add_argument("--keep", metavar="SIZE", type=size, help="keep this much, as 10G or 800M")
    about = "remove what was not used for DAYS days (default: 30)"
    bound.add_argument("--older", metavar="DAYS", type=days, default=30.0, help=about)
    gc.add_argument("--all", action="store_true", help="also remove what the default kernels need")
    gc.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    gc.add_argument("--json", action="store_true", help="print JSON")
    gc.set_defaults(perform=_gc)


def _entries(names: Sequence[str]) -> list[KernelEntry]:
    catalog = load_catalog()
    return [catalog.find(name) for name in names] if names else list(catalog.default())


def _list(arguments: argparse.Namespace) -> int:
    if arguments.buildable:
        found = survey(_entries(arguments.kernel), Store())
        for one in found:
            if one.state in (State.BUILT, State.BUILDABLE):
                print(one.entry.kernel_id)
        return 0
    catalog = load_catalog()
    chosen = [catalog.find(name) for name in arguments.kernel] or catalog.entries.values()
    found = survey(chosen, Store())
    code = _print_broken(catalog) if not arguments.kernel else 0
    if arguments.json:
        print_json([one.to_json() for one in found])
        return code
    notes = list(dict.fromkeys(one.note for one in found if one.note))
    rows = []
    for one in found:
        source = f"variant of {one.entry.of}" if one.entry.of else str(one.entry.source)
        mark = f" [{notes.index(one.note) + 1}]" if one.note else ""
        rows.append((one.entry.kernel_id, source, f"{one.short}{mark}"))
    names, sources, _ = (max(map(len, column), default=0) for column in zip(*rows, strict=True))
    for name, source, state in rows:
        print(*wrapped(f"{name:<{names}}  {source:<{sources}}  {state}", hanging=4), sep="\n")
    for number, note in enumerate(notes, 1):
        print(*wrapped(f"[{number}] {note}", hanging=4), sep="\n")
    return code


def _print_broken(catalog: Catalog) -> int:
    """Print what is wrong with files of the catalog; the exit code."""
    for error in catalog.broken.values():
        print(f"uevt: {error.with_hint}", file=sys.stderr)
    return exit_code(Ending.USAGE) if catalog.broken else 0


def _build(arguments: argparse.Namespace) -> int:
    built = 0
    for entry in _entries(arguments.kernel):
        progress = StreamProgress(sys.stderr)
        try:
            print(ensure(entry, Store(), progress=progress, refresh=arguments.refresh).image)
            built += 1
        except (MissingTool, SourceUnavailable) as error:
            if arguments.kernel:
                raise
            # Without names, kernels that cannot be built here are skipped.
            print(f"uevt: {entry.kernel_id} is left out: {error.with_hint}", file=sys.stderr)
    return exit_code(Ending.PASS if built else Ending.HOST)


def _path(arguments: argparse.Namespace) -> int:
    store = Store()
    for entry in _entries(arguments.kernel):
        built = store.lookup(entry)
        if built is None:
            name = entry.kernel_id
            print(f"uevt: {name} is not built; uevt kernels build {name}", file=sys.stderr)
            return exit_code(Ending.HOST)
        print(built.image)
    return 0


def _source(arguments: argparse.Namespace) -> int:
    """Print source trees, and on standard error how to make a patch."""
    trees = SourceTrees(Store(), silent)
    for entry in _entries(arguments.kernel):
        tree = trees.stored(entry)
        if tree is None:
            name = entry.kernel_id
            what = f"uevt: the source of {name} is not in the store; uevt kernels build {name}"
            print(what, file=sys.stderr)
            return exit_code(Ending.HOST)
        print(tree)
        if entry.patches:
            files = " and ".join(str(VARIANTS / f"{patch.name}.patch") for patch in entry.patches)
            print(f"uevt: {entry.kernel_id} is this tree with {files} applied", file=sys.stderr)
    print(f"uevt: {_HOW_TO_PATCH}", file=sys.stderr)
    return 0


def size(text: str) -> int:
    """The number of bytes in a size such as 10G or 800M.  Raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(text)
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def days(text: str) -> float:
    """A number of days, 0 or more.  Raises ValueError."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _gc(arguments: argparse.Namespace) -> int:
    since = None if arguments.keep is not None else time.time() - arguments.older * 24 * 3600
    bound = Bound(arguments.keep, since, every=arguments.all)
    in_use = load_catalog().default()
    progress = StreamProgress(sys.stderr)
    done = collect(Store(), in_use, bound, dry_run=arguments.dry_run, progress=progress)
    if arguments.json:
        print_json(done.to_json())
        return 0
    for item in done.gone:
        print(item)
    verb = "would be removed" if arguments.dry_run else "removed"
    print(f"{in_mib(done.freed)} {verb}, {in_mib(done.kept)} kept", end="")
    if arguments.keep is not None and done.kept > arguments.keep:
        needed = 0 if arguments.all else done.needed
        why = {
            "are what the default kernels need (--all removes it)": needed,
            "are in use, or were in the last hour": done.kept - needed,
        }
        sizes = [f"{in_mib(size)} {what}" for what, size in why.items() if size]
        print(f": more than --keep, since {' and '.join(sizes)}", end="")
    print()
    return 0
