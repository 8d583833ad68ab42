"""`uevt cases`: ids, sentences and levels of the cases, and where their source is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from types import FunctionType
from typing import Any

from msgspec import Struct

from conformance.abi.profile import Profile, ProfileError, profile_for
from conformance.cases.case import Case, Tier
from conformance.cases.surfaces import place
from conformance.cases.variants import Variant, all_variants
from conformance.cli.output import print_json
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.frozen import DOCS, FrozenList
from conformance.results.summary import Summary
from conformance.runner.case_location import defined_at
from conformance.session.selection import expression, matches
from host.text import WIDTH, counted, wrapped
from kernels.catalog.catalog import load_catalog
from kernels.errors import UserMistake
from kernels.store.store import Store


class Listed(Struct, frozen=True):
    """A case with the ids of its selected variants (its own id if it has none), and its place."""

    case: Case
    ids: tuple[str, ...]
    file: str
    line: int

    @property
    def variants(self) -> tuple[str, ...]:
        """The ids, unless the case has no variants."""
        return self.ids if self.ids != (self.case.id,) else ()

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        case = self.case
        return {
            "id": case.id,
            "sentence": case.sentence,
            "level": case.level.value,
            "tier": case.tier.value,
            "profiles": case.profiles,
            "spec": case.spec,
            "doc": case.doc,
            "bugs": list(case.bugs),
            "file": self.file,
            "line": self.line,
            "variants": list(self.variants),
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        case = self.case
        number = f", {counted(len(self.ids), 'variant')}" if self.variants else ""
        head, place = f"{case.id} ({case.level}{number})", f"{self.file}:{self.line}"
        yield from [f"{head} {place}"] if len(head) + len(place) < WIDTH else [head, f"    {place}"]
        yield from wrapped(case.sentence, indent=4)


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    about = "only cases with EXPR in their ids, such as 'write or status'"
    parser.add_argument("-k", dest="keyword", default="", metavar="EXPR", help=about)
    about = "only cases that apply to a kernel of the catalog"
    parser.add_argument("--kernel", metavar="K", help=about)
    parser.add_argument("--abi", metavar="A", help="only cases that apply to an ABI, such as 6.8")
    about = "only cases of a tier: quick, or full for all"
    parser.add_argument("--tier", choices=[each.value for each in Tier], help=about)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    about = "print an LTP runtest file, whose tests run COMMAND: 'uevt run --kernel 6.12'"
    form.add_argument("--runtest", metavar="COMMAND", help=about)
    about = "print ids and digests of the programs: a list for uevt run --frozen"
    form.add_argument("--frozen", action="store_true", help=about)
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    """Raises UserMistake for an unknown kernel or ABI, and if nothing is selected."""
    profile = _profile(arguments.kernel, arguments.abi)
    found = select(arguments.keyword, profile, arguments.tier)
    if not found:
        of = f" of {profile.name}" if profile else ""
        what = f"no case{of} matches -k {arguments.keyword!r}"
        raise UserMistake(what, "-k matches parts of case ids; uevt cases lists them")
    if arguments.json:
        print_json([each.to_json() for each in found])
    elif arguments.runtest is not None:
        sys.stdout.write(_runtest(found, arguments.runtest))
    elif arguments.frozen:
        sys.stdout.write(_frozen(found))
    else:
        for each in found:
            sys.stdout.write("".join(f"{line}\n" for line in each.lines()))
        if len(found) == 1 and found[0].variants:
            sys.stdout.write("\n".join(wrapped(", ".join(found[0].ids), indent=4)) + "\n")
        number = sum(len(each.ids) for each in found)
        sys.stdout.write(f"{counted(len(found), 'case')}, {number:,} with variants\n")
    return exit_code(Ending.PASS)


def _runtest(found: Sequence[Listed], command: str) -> str:
    """Lines of an LTP runtest file: a name, and a command that the shell runs.

    Raises UserMistake for a command of several lines.
    """
    if not command.strip() or not command.isprintable():
        what = f"--runtest needs a command on one line, not {command!r}"
        raise UserMistake(what, "write --runtest 'uevt run --kernel 6.12'")
    style = f"--exit-style {ExitStyle.LTP} --quiet"
    ids = [id for each in found for id in each.ids]
    return "".join(f"{id} {command.strip()} {style} --only {id}\n" for id in ids)


def _frozen(found: Sequence[Listed]) -> str:
    """The frozen list of those cases that docs/results has.  Raises ReportError."""
    published = [
        {id: case.digest for id, case in Summary.read(path).cases.items()}
        for path in sorted((DOCS / "results").glob("*.json"))
    ]
    return FrozenList.of(version("uevt"), (id for each in found for id in each.ids), published).text


def select(keyword: str, profile: Profile | None, tier: str | None = None) -> Sequence[Listed]:
    """The cases that -k selects, of a tier, that apply to a profile.  Raises UserMistake."""
    wanted = expression(keyword)
    found: dict[Case, list[Variant]] = {}
    for each in sorted(all_variants(), key=lambda each: place(each.case.surface)):
        applies = profile is None or each.case.applies(profile)
        in_tier = tier != Tier.QUICK or each.tier is Tier.QUICK
        if applies and in_tier and matches(wanted, each.id):
            found.setdefault(each.case, []).append(each)
    listed = []
    for case, variants in found.items():
        function = variants[0].function
        assert isinstance(function, FunctionType)
        listed.append(Listed(case, tuple(each.id for each in variants), *defined_at(function)))
    return listed


def _profile(kernel: str | None, abi: str | None) -> Profile | None:
    """The profile that a run would judge by, as far as it is known without a build."""
    release = None
    if kernel is not None:
        entry = load_catalog().find(kernel)
        built = Store().lookup(entry)
        release = built.release if built else None
        abi = abi or entry.abi_for(release or entry.of or entry.name)
    try:
        return None if abi is None else profile_for(abi, base=release)
    except ProfileError as error:
        raise UserMistake(str(error), "name a release: --abi 6.12") from error
