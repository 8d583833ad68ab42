"""The image that has all mutants, and the choice of some."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

from conformance.session.options import apply_defaults, default_options
from conformance.session.target.target import Target, resolve
from kernels.errors import KernelTrouble
from tests.bench.guests import tree_of
from tests.bench.mutation.mutants import Instrumented, Mutant

SOURCE = Path("kernel/trace/trace_events_user.c")
_ERROR = re.compile(rf"{SOURCE}:(\d+):\d+: error")
_ATTEMPTS = 8


def built(out: Path) -> tuple[list[Mutant], Target]:
    """The mutants that compile, and the image that has them."""
    text = (tree_of("6.12") / SOURCE).read_text()
    without: frozenset[int] = frozenset()
    for _ in range(_ATTEMPTS):
        made = Instrumented(text, without)
        patch = out / "machine_made.patch"
        names = f"a/{SOURCE}", f"b/{SOURCE}"
        lines = difflib.unified_diff(text.splitlines(True), made.text.splitlines(True), *names)
        patch.write_text("".join(lines))
        try:
            options = default_options(kernel="6.12", patch=[str(patch)])
            apply_defaults(options)
            target = resolve(options)
        except KernelTrouble as error:
            bad = {int(line) for line in _ERROR.findall(str(error))}
            if not bad:
                raise
            mutated = made.text.splitlines()
            numbers = {
                int(n) for line in bad for n in re.findall(r"uevt_is\((\d+)\)", mutated[line - 1])
            }
            without |= {each.line for each in made.mutants if each.number in numbers}
        else:
            return made.mutants, target
    raise SystemExit("the mutants do not compile")


def parser(prog: str) -> argparse.ArgumentParser:
    """The arguments that choose mutants, and where results go."""
    found = argparse.ArgumentParser(prog=prog)
    found.add_argument("--out", type=Path, required=True, help="a directory for the results")
    found.add_argument("--sample", type=int, default=0, help="so many mutants, chosen by chance")
    found.add_argument("--seed", default="1")
    found.add_argument("--only", type=int, nargs="+", metavar="N", help="only these mutants")
    return found


def chosen(options: argparse.Namespace, mutants: Sequence[Mutant]) -> list[int]:
    """The numbers of the chosen mutants."""
    numbers = options.only or [each.number for each in mutants]
    if options.sample:
        numbers = sorted(Random(options.seed).sample(numbers, options.sample))
    return list(numbers)
