"""Paired measurements: two things in turn, several times, so that a noisy host hits both."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Measure = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pair:
    """Samples of a thing and of what it is compared with, taken in turn; in ``unit``."""

    what: str
    beside: str
    unit: str
    samples: tuple[float, ...]
    others: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the thing itself."""
        return statistics.median(self.samples)

    @property
    def other(self) -> float:
        """Of what it is compared with."""
        return statistics.median(self.others)

    @property
    def ratio(self) -> float:
        """The median of the ratios of pairs."""
        ratios = [mine / theirs for mine, theirs in zip(self.samples, self.others, strict=True)]
        return statistics.median(ratios)


def pair(
    what: str, measure: Measure, beside: str, other: Measure, *, unit: str = "s", rounds: int
) -> Pair:
    """Take both in turn, ``rounds`` times."""
    samples, others = [], []
    for _ in range(rounds):
        others.append(other())
        samples.append(measure())
    return Pair(what, beside, unit, tuple(samples), tuple(others))


def table(pairs: Sequence[Pair]) -> str:
    """Markdown: medians, the spread of the thing itself, and the ratio."""
    lines = [
        "| measured | median | from … to | beside | median | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for each in pairs:
        spread = f"{_number(min(each.samples))} … {_number(max(each.samples))}"
        lines.append(
            f"| {each.what} | {_number(each.median)} {each.unit} | {spread} "
            f"| {each.beside} | {_number(each.other)} {each.unit} | {each.ratio:.3f} |"
        )
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
