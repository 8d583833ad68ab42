"""Runs for the pages: a few kernels with one of everything, many kernels, and hostile texts."""

from __future__ import annotations

from msgspec.structs import replace

from conformance.report.matrix.findings import Finding
from conformance.results.case_result import CaseResult, Evidence, Mismatch
from conformance.results.outcome import Outcome
from conformance.results.stored_runs import Run
from tests.report.matrix import test_html
from tests.report.samples import case, failure, kernel, mixed

FINDING = Finding(
    "`format` prints a length", "Case `format.array_length`.", frozenset({"format.array_length"})
)
KERNELS = ("6.1.10", "6.4.5", "6.12.117", "7.3.4")
MANY_KERNELS, MANY_CASES = 20, 800
# Time to open a page.
OPEN_MS = 1000
# A delay too short to notice.
LAG_MS = 100


def kernels() -> list[Run]:
    """Four kernels; the third has one of everything."""
    quiet = [
        case(f"write.size.n-{n}", sentence=f"A write of {n} bytes is whole.") for n in range(30)
    ]
    broken = {each.id: each for each in mixed().cases}
    runs = []
    for release in KERNELS:
        odd = [
            broken[id] if release == "6.12.117" else case(id, sentence=each.sentence)
            for id, each in broken.items()
        ]
        runs.append(Run(kernel(release, *quiet, *(odd if release != "6.1.10" else odd[:2]))))
    return runs


def many() -> list[Run]:
    """Twenty kernels of eight hundred cases, of which every twentieth fails in its own way."""
    return [
        Run(kernel(f"6.{number}.1", *(_one(number, place) for place in range(MANY_CASES))))
        for number in range(MANY_KERNELS)
    ]


def _one(number: int, place: int) -> CaseResult:
    id = f"surface{place % 40}.case_{place}.variant"
    shown = case(
        id, sentence=f"What case {place} proves, in as many words as that takes.", duration_s=0.01
    )
    if (number + place) % 20:
        return replace(shown, evidence=Evidence(docs=f"user_events.rst@v6.12: words about {place}"))
    steps = tuple(
        f"{step}. p1: mmap((void *)0x{number:x}{place:x}, 64); = 0" for step in range(1, 40)
    )
    evidence = Evidence(steps, "step 3: 0", "step 3: -1 EINVAL", "words", "[    1.0] text\n" * 20)
    mismatch = Mismatch(3, "errno", "success", "EINVAL")
    return replace(
        shown, outcome=Outcome.FAIL, reason="it broke", mismatches=(mismatch,), evidence=evidence
    )


def beside() -> list[Run]:
    """A kernel whose failures are no cases of their own."""
    ids = ("write.a.probe", "write.a.probe.leftover", "write.b.afterwards", "module.some")
    return [Run(kernel("7.3", *(case(id, Outcome.FAIL) for id in ids)))]


def hostile() -> list[Run]:
    """Two kernels; every text of the first is a script."""
    return [Run(test_html.hostile()), Run(kernel("7.3", failure()))]
