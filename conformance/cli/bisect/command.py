"""`uevt bisect`: find the first commit of a tree at which a case fails."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from conformance.cli.bisect.judge import Judge, SelectedCases, profile_of
from conformance.cli.bisect.walk import Walk
from conformance.cli.one_kernel import clean_up_on_hangup
from conformance.results.directory import claim, default_directory, link_latest, reserved
from conformance.results.outcome import Level
from conformance.session.launch import ROOT, session
from conformance.session.options import lasting
from host.progress import StreamProgress
from kernels.store.store import Store
from kernels.trees.git_bisect import Bisection, workspace
from kernels.trees.user_tree import entry_of


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("--good", required=True, metavar="A", help="a commit at which the cases pass")
    add("--bad", required=True, metavar="B", help="a later commit at which one of them fails")
    about = "a case id, or a function for all its variants; may be repeated"
    add("--case", action="append", required=True, metavar="ID", help=about)
    about = "the repository, which is only read (default: .)"
    add("--tree", default=".", metavar="DIR", help=about)
    add("--abi", metavar="A", help="the ABI for all commits (default: that of each release)")
    add("--config", action="append", default=[], metavar="FILE", help="configuration to add")
    add("--flavour", metavar="F", help="debug, gcov or fault: kernels that check more")
    add("--append", action="append", default=[], metavar="ARGS", help="kernel arguments to add")
    about = "weakest level of a deviation that is bad (default: that of the cases)"
    add("--fail-on", choices=[level.value for level in Level], help=about)
    add("--out", metavar="DIR", help="directory of log and results (default: below results/)")
    about = "after --: only commits that touch these paths, from the top of the repository"
    add("path", nargs="*", metavar="PATH", help=about)
    parser.set_defaults(perform=perform)


def perform(arguments: Namespace) -> int:
    """0 if the commit was found, 1 if none or several were; raises what `uevt run` raises."""
    clean_up_on_hangup()
    selected = SelectedCases.named(arguments.case)
    given = Namespace(
        tree=str(Path(arguments.tree).absolute()),
        abi=arguments.abi,
        config=[lasting(Path(each).absolute()) for each in arguments.config],
        flavour=arguments.flavour,
        append=arguments.append,
        fail_on=arguments.fail_on or selected.level.value,
    )
    store = Store()
    good, bad = (_resolved(given.tree, ref, store) for ref in (arguments.good, arguments.bad))
    with workspace(store) as scratch:
        bisection = Bisection(Path(given.tree), good, bad, scratch, arguments.path)
        for sha in (good, bad):
            selected.ids(profile_of(given, sha))
        out = _directory(arguments.out)
        walk = Walk(bisection, Judge(given, selected, out, session), good, bad, out)
        return walk.perform(", ".join(arguments.case), given.tree)


def _resolved(tree: str, ref: str, store: Store) -> str:
    """The full id of a commit with a kernel tree.  Raises UserMistake."""
    sha = entry_of(Path(tree), ref, store, StreamProgress(sys.stderr)).source.ref
    assert sha is not None
    return sha


def _directory(given: str | None) -> Path:
    """The directory of log and results, created; ``latest`` is a link to one below results/."""
    if given:
        out = Path(given).absolute()
        claim(out)
    else:
        out = reserved(default_directory(ROOT / "results", "bisect", datetime.now(UTC)))
        link_latest(out)
    return out
