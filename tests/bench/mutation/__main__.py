"""`python -m tests.bench.mutation`: judge machine-made wrong kernels by the cases of 6.12.

One image holds all mutants of trace_events_user.c; a parameter chooses the one that acts.  A first
pass notes which cases reach which mutant; then each mutant is judged by those, the quick tier
first, on a restored guest, until a case deviates.  Those that no case notices are printed with the
reason that survivors.toml gives.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from conformance.cases.case import Isolation, Tier
from conformance.cases.variants import Variant, all_variants
from conformance.client.user_events import UserEvents
from conformance.results.case_result import CaseResult
from conformance.results.outcome import UNEXPECTED
from conformance.runner.guest_setup import ACTOR, text_of, write_file
from conformance.session.target.target import Target
from conformance.session.worker.worker import Worker
from host.temporary_directories import scratch
from tests.bench import reasons
from tests.bench.mutation.image import built, chosen, parser
from tests.bench.mutation.mutants import PARAMETERS, Mutant
from tests.bench.mutation.spread import spread

SURVIVORS = Path(__file__).with_name("survivors.toml")
UNEXPLAINED = "unexplained"


class Mutants:
    """A guest of the image with all mutants."""

    def __init__(self, target: Target, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.worker = Worker(target, directory)

    def run(self, variant: Variant, mutant: int) -> CaseResult:
        """Run a variant while a mutant acts, none if it is 0."""

        def attempt() -> BaseException | None:
            try:
                user_events = self.worker.begin()
                self._call(write_file(f"{PARAMETERS}/mutant", f"{mutant}\n"))
                self._perform(variant, user_events)
            except Exception as error:
                return error
            return None

        self.worker._case = (variant.case, variant.id)
        return self.worker._once(variant.case, variant.id, attempt)

    def _perform(self, variant: Variant, user_events: UserEvents) -> None:
        variant.function(user_events, **variant.arguments)
        user_events.lockstep.run()

    def reached(self) -> list[int]:
        """The mutants that the last case has reached."""
        (result,) = self._call(["slurp", f"{PARAMETERS}/reached", 1 << 16])
        return [n for n, flag in enumerate(text_of(result).split(",")) if int(flag)]

    def fresh(self) -> None:
        """Restore the guest before the next case."""
        self.worker._runner._lifecycle.must_replace = True

    def leftovers(self) -> list[CaseResult]:
        """What the kernel kept of the cases so far."""
        self.worker._runner._lifecycle.settle()
        return self.worker.take_other_results()

    def _call(self, call: Any) -> list[dict[str, Any]]:
        guest = self.worker._guest
        assert guest is not None
        return guest.call(ACTOR, [call])


def main() -> int:
    """Judge the mutants and print the survivors; the exit code is 1 if one is unexplained."""
    arguments = parser("python -m tests.bench.mutation")
    arguments.add_argument("--limit", type=float, default=60.0, help="seconds to judge one mutant")
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    mutants, target = built(options.out)
    with scratch() as directory:
        reaching = _reaching(target, directory / "reach")
        log = options.out / "judged.jsonl"
        judge = partial(_judged, mutants, reaching, options.limit)
        judging = partial(_in_guest, target, judge)
        found = list(spread(judging, directory / "judge", chosen(options, mutants), log))
    return int(not _print(mutants, found))


def _variants(target: Target) -> list[Variant]:
    """Quick ones first; without those that need a guest of another kind, or spoil theirs."""
    found = [
        each
        for each in all_variants()
        if each.case.applies(target.profile)
        and each.case.isolation is not Isolation.FATAL
        and not each.case.programs
        and not each.case.module
    ]
    return sorted(found, key=lambda each: (each.tier is not Tier.QUICK, each.case.processors))


def _reaching(target: Target, directory: Path) -> Mapping[int, list[Variant]]:
    """The variants that reach each mutant, the fastest of the quick tier first."""
    variants = _variants(target)
    reach = partial(_in_guest, target, partial(_reach, variants))
    found: dict[int, list[tuple[float, int]]] = {}
    for at, seconds, numbers in spread(reach, directory, range(len(variants))):
        for number in numbers:
            found.setdefault(number, []).append((seconds, at))
    return {
        number: [
            variants[at]
            for _, at in sorted(each, key=lambda f: (variants[f[1]].tier is not Tier.QUICK, f[0]))
        ]
        for number, each in found.items()
    }


def _in_guest(
    target: Target,
    perform: Callable[[Mutants, int], Any],
    directory: Path,
    share: Sequence[int],
) -> Iterator[Any]:
    """What ``perform`` returns for each item, in one guest."""
    guest = Mutants(target, directory)
    with closing(guest.worker):
        for item in share:
            yield perform(guest, item)


def _reach(variants: Sequence[Variant], guest: Mutants, at: int) -> tuple[int, float, list[int]]:
    result = guest.run(variants[at], 0)
    if result.outcome in UNEXPECTED:
        sys.stdout.write(f"without a mutant: {result.id} {result.reason}\n")
    return at, result.duration_s, guest.reached()


def _judged(
    mutants: Sequence[Mutant],
    reaching: Mapping[int, list[Variant]],
    limit_s: float,
    guest: Mutants,
    number: int,
) -> dict[str, Any]:
    """The case that noticed a mutant first or "", and how many were tried of how many."""
    variants = reaching.get(number, [])
    # What the kernel keeps is looked at when a tier ends.
    ends = sum(each.tier is Tier.QUICK for each in variants), len(variants)
    guest.fresh()
    began = time.monotonic()
    tried, noticed = 0, {"case": "", "outcome": "", "reason": "", "quick": False}
    for tried, variant in enumerate(variants, 1):
        late = time.monotonic() - began > limit_s
        results = [guest.run(variant, number), *guest.worker.take_other_results()]
        if late or tried in ends:
            results += guest.leftovers()
        found = next((each for each in results if each.outcome in UNEXPECTED), None)
        if found is not None:
            noticed = {
                "case": found.id,
                "outcome": found.outcome.value,
                "reason": found.reason,
                "quick": variant.tier is Tier.QUICK,
            }
        if found is not None or late:
            break
    seconds = round(time.monotonic() - began, 2)
    counts = {"tried": tried, "reaching": len(variants), "seconds": seconds}
    return {"number": number, "mutant": str(mutants[number - 1]), **noticed, **counts}


def _print(mutants: Sequence[Mutant], found: Sequence[Mapping[str, Any]]) -> bool:
    """Print what was not noticed, by reason; whether every mutant of it has one."""
    tables = reasons.read(SURVIVORS)
    survivors: dict[str, list[str]] = {}
    kinds = Counter[str]()
    for each in found:
        if each["case"]:
            continue
        mutant = mutants[each["number"] - 1]
        kind, why = _explained(mutant, tables)
        kinds[kind] += 1
        tried = f"{each['tried']} of {each['reaching']} cases"
        survivors.setdefault(f"{kind}: {why}", []).append(f"{mutant} ({tried})")
    for heading, several in sorted(survivors.items()):
        sys.stdout.write(f"{heading}\n")
        sys.stdout.writelines(f"  {each}\n" for each in several)
    killed = [each for each in found if each["case"]]
    counts = " ".join(f"{kind}={kinds[kind]}" for kind in (*tables, UNEXPLAINED))
    seconds = sum(each["seconds"] for each in found) / max(len(found), 1)
    sys.stdout.write(
        f"mutation kernel=6.12 mutants={len(found)} killed={len(killed)} "
        f"quick={sum(each['quick'] for each in killed)} {counts} seconds_per_mutant={seconds:.1f}\n"
    )
    return not kinds[UNEXPLAINED]


def _explained(mutant: Mutant, tables: Mapping[str, reasons.Reasons]) -> tuple[str, str]:
    """The table that explains why a mutant survives, and the reason in it."""
    for kind, table in tables.items():
        if why := reasons.reason(mutant.function, mutant.change, table):
            return kind, why
    return UNEXPLAINED, "no reason is known"


if __name__ == "__main__":
    sys.exit(main())
