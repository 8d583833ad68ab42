"""Paired measurements: alternate two operations, so that a noisy host affects both."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from conformance.report import markdown

Measure = Callable[[], float]


class Pair(Struct, frozen=True):
    """Alternating samples of an operation and of a reference, in `unit`."""

    what: str
    reference: str
    unit: str
    samples: tuple[float, ...]
    others: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the operation."""
        return statistics.median(self.samples)

    @property
    def other(self) -> float:
        """Median of the reference."""
        return statistics.median(self.others)

    @property
    def ratio(self) -> float:
        """Median of the ratios of the pairs."""
        ratios = [mine / theirs for mine, theirs in zip(self.samples, self.others, strict=True)]
        return statistics.median(ratios)


def pair(
    what: str, measure: Measure, reference: str, other: Measure, *, unit: str = "s", rounds: int
) -> Pair:
    """Measure both alternately, `rounds` times."""
    samples, others = [], []
    for _ in range(rounds):
        others.append(other())
        samples.append(measure())
    return Pair(what, reference, unit, tuple(samples), tuple(others))


def table(pairs: Sequence[Pair]) -> str:
    """A Markdown table of medians, spread and ratio."""
    rows = [
        (
            *(each.what, f"{_number(each.median)} {each.unit}"),
            f"{_number(min(each.samples))} … {_number(max(each.samples))}",
            *(each.reference, f"{_number(each.other)} {each.unit}", f"{each.ratio:.3f}"),
        )
        for each in pairs
    ]
    head = ("measured", "median", "from … to", "reference", "median", "ratio")
    return markdown.table(head, rows)


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def keep(page: Path, name: str, text: str) -> None:
    """Replace what a page has between `<!-- NAME -->` and `<!-- end -->`."""
    begin, end = f"<!-- {name} -->\n", "<!-- end -->\n"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
