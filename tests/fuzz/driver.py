"""Fuzzing one target for so many inputs, and making what is found small."""

from __future__ import annotations

import hashlib
import re
import resource
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.mutation import Mutator
from tests.fuzz.target import Target

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "fixtures" / "fuzz"
# Inputs that show something new are worth changing further; so many are remembered.
_MOST = 400
_TRIES_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a reader did not take as it should; ``what`` says how, and where."""

    target: str
    what: str
    data: bytes

    @property
    def name(self) -> str:
        """A name for a file that holds the input."""
        said = re.sub(r"[^A-Za-z]+", "-", self.what.partition(" ")[0]).strip("-").lower()
        return f"{said}-{hashlib.sha256(self.data).hexdigest()[:8]}"


@dataclass(slots=True)
class Tally:
    """What fuzzing a target came to; ``grown_mib`` is what the process grew by at its peak."""

    target: str
    inputs: int = 0
    read: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    grown_mib: int = 0
    findings: list[Finding] = field(default_factory=list)


class Fuzzer:
    """Fuzzes one target, a while at a time; the inputs are the same ones for the same seed."""

    def __init__(self, target: Target, seed: int = 0) -> None:
        self.tally = Tally(target.name)
        self._target = target
        self._mutator = Mutator(f"{target.name} {seed}", target.tokens)
        # The first inputs are the seeds themselves.
        self._seeds = list(target.seeds())
        self._corpus = list(self._seeds)
        self._seen: set[str] = set()

    def go(self, inputs: int, seconds: float = float("inf")) -> Tally:
        """Read so many inputs more, or for so many seconds."""
        tally = self.tally
        peak, started, end = _peak_mib(), time.perf_counter(), tally.inputs + inputs
        while tally.inputs < end and time.perf_counter() - started < seconds:
            self._one()
        tally.seconds += time.perf_counter() - started
        tally.grown_mib += max(0, _peak_mib() - peak)
        return tally

    def _one(self) -> None:
        number, tally = self.tally.inputs, self.tally
        first = number < len(self._seeds)
        data = self._seeds[number] if first else self._mutator.made_of(self._corpus)
        tally.inputs += 1
        began = time.perf_counter()
        kind, trouble = _outcome(self._target, data)
        tally.slowest_s = max(tally.slowest_s, time.perf_counter() - began)
        tally.read += kind == "read"
        if kind in self._seen:
            return
        self._seen.add(kind)
        if trouble:
            tally.findings.append(Finding(tally.target, kind, smaller(self._target, data, kind)))
        elif len(self._corpus) < len(self._seeds) + _MOST:
            self._corpus.append(data)


def smaller(target: Target, data: bytes, kind: str) -> bytes:
    """A part of an input of which the same comes."""
    piece, end = len(data) // 2, time.perf_counter() + _TRIES_S
    while piece and time.perf_counter() < end:
        at = 0
        while at < len(data) and time.perf_counter() < end:
            less = data[:at] + data[at + piece :]
            if _outcome(target, less)[0] == kind:
                data = less
            else:
                at += piece
        piece //= 2
    return data


def keep(findings: Iterable[Finding], directory: Path = KEPT) -> None:
    """Have inputs read by every test run from now on."""
    for finding in findings:
        place = directory / finding.target
        place.mkdir(parents=True, exist_ok=True)
        (place / finding.name).write_bytes(finding.data)


def kept(target: Target, directory: Path = KEPT) -> dict[str, bytes]:
    """The inputs that were once a finding, by name."""
    files = sorted((directory / target.name).glob("*"))
    return {file.name: file.read_bytes() for file in files}


def _outcome(target: Target, data: bytes) -> tuple[str, bool]:
    """What came of an input (an error with its place), and whether that must not be."""
    try:
        return target.kind(data), False
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if frame.filename.startswith(str(ROOT))]
        inner = [frame for frame in ours if "/tests/" not in frame.filename] or ours
        place = f"{Path(inner[-1].filename).relative_to(ROOT)}:{inner[-1].lineno}" if inner else ""
        # Of a recursion every depth is another place.
        return f"{type(error).__name__} {'' if isinstance(error, RecursionError) else place}", True


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
