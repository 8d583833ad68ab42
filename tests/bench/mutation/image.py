"""The image that has all mutants."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

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
