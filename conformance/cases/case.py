"""Declaring a case: its id, references, the kernels it holds for, and its isolation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

import pytest

from conformance.abi.profile import Profile, in_range
from conformance.abi.switches import BY_NAME, DERIVED
from conformance.results.case_result import CASE_ID

CaseFunction = TypeVar("CaseFunction", bound=Callable[..., None])

_VARIANT = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_ATTRIBUTE = "uevt_case"


# How many variants of a case run in tier quick, which proves every sentence once or twice.
QUICK_VARIANTS = 1
# Marks the others.
FULL_MARK = pytest.mark.uevt_full
# Marks a case with one of its tables: what it is parametrised by, and the rows.
VARIANTS_MARK = pytest.mark.uevt_variants


class Tier(StrEnum):
    """How long a case may take: all time goals speak of quick."""

    QUICK = "quick"
    FULL = "full"


class Isolation(StrEnum):
    """What a case leaves behind or needs.

    ``none`` leaves nothing; ``events`` creates only events of its own, which may linger;
    ``global`` touches or reads what all events share and puts it back, and starts on a
    system without events; ``fatal`` destroys the guest.
    """

    NONE = "none"
    EVENTS = "events"
    GLOBAL = "global"
    FATAL = "fatal"


class Facility(StrEnum):
    """What a case uses of the kernel beside user_events, and a kernel may be built without."""

    PERF = "perf"
    BPF = "bpf"
    # Programs on events; they need bpf and perf.
    BPF_TRACING = "bpf_tracing"
    KPROBES = "kprobes"
    IO_URING = "io_uring"
    # Probes on other events, made through dynamic_events.
    EPROBES = "eprobes"
    HIST = "hist"
    SNAPSHOT = "snapshot"
    # A guest of two processors.
    SMP = "smp"

    @property
    def option(self) -> str:
        """The kernel's option for it."""
        return _OPTION[self]


_OPTION = {
    Facility.PERF: "CONFIG_PERF_EVENTS",
    Facility.BPF: "CONFIG_BPF_SYSCALL",
    Facility.BPF_TRACING: "CONFIG_BPF_EVENTS",
    Facility.KPROBES: "CONFIG_KPROBE_EVENTS",
    Facility.IO_URING: "CONFIG_IO_URING",
    Facility.EPROBES: "CONFIG_PROBE_EVENTS",
    Facility.HIST: "CONFIG_HIST_TRIGGERS",
    Facility.SNAPSHOT: "CONFIG_TRACER_SNAPSHOT",
    Facility.SMP: "CONFIG_SMP",
}


@dataclass(frozen=True, slots=True)
class Case:
    """What is declared about a case.

    ``doc`` is file@tag and our own words for what the kernel's documentation or header
    says there; ``spec`` the function of the kernel that decides.
    """

    id: str
    spec: str
    doc: str
    profiles: str
    needs: tuple[str, ...]
    tier: Tier
    isolation: Isolation
    # The dated switch that this case is about, "" for none.
    switch: str = ""
    # Switches, and what is derived from them, that must be off.
    without: tuple[str, ...] = ()
    # The module of fixtures/modules that must be loaded, "" for none.
    module: str = ""
    # What it uses of the kernel beside user_events; what another implies is not named.
    facilities: tuple[Facility, ...] = ()
    # What it proves: the first paragraph of its docstring, on one line.
    sentence: str = ""

    @property
    def surface(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]

    @property
    def processors(self) -> int:
        """How many processors its guest has."""
        return 2 if Facility.SMP in self.facilities else 1

    def applies(self, profile: Profile) -> bool:
        """Whether kernels of a profile are judged by this case."""
        return (
            in_range(self.profiles, profile)
            and all(map(profile.has, self.needs))
            and not any(map(profile.has, self.without))
        )


def case(
    id: str,
    *,
    spec: str,
    doc: str,
    profiles: str = "6.4..",
    needs: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
    tier: str = "quick",
    isolation: str = "events",
    switch: str = "",
    module: str = "",
    facilities: tuple[str, ...] = (),
) -> Callable[[CaseFunction], CaseFunction]:
    """Declare a test function to be a case.

    ``profiles`` is a range of releases such as ``6.4..``; ``needs`` names switches, or
    what is derived from them, that must be on, ``without`` those that must be off.
    ``switch`` names the one that the case is about: its program is the probe that shows
    whether a kernel has it (where it is among ``needs`` too, nothing can be said of kernels
    without).  ``module`` names a module of fixtures/modules that has to be loaded,
    ``facilities`` what the kernel may be built without.  Raises ValueError for an id or word
    out of place.
    """
    if not CASE_ID.fullmatch(id):
        raise ValueError(f"case id {id!r}: write surface.name in [a-z0-9_.-]")
    for need in (*needs, *without):
        if need not in BY_NAME and need not in DERIVED:
            raise ValueError(f"case {id}: no switch {need!r}")
    if switch and switch not in BY_NAME:
        raise ValueError(f"case {id}: no switch {switch!r} to be about")
    declared = Case(
        id=id,
        spec=spec,
        doc=doc,
        profiles=profiles,
        needs=needs,
        without=without,
        tier=Tier(tier),
        isolation=Isolation(isolation),
        switch=switch,
        module=module,
        facilities=tuple(map(Facility, facilities)),
    )

    def mark(function: CaseFunction) -> CaseFunction:
        sentence = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
        setattr(function, _ATTRIBUTE, replace(declared, sentence=sentence))
        return function

    return mark


def declared(function: object) -> Case | None:
    """What ``case`` declared about a function, if anything."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Case) else None


def variants(
    names: str, table: Mapping[str, Any], *, quick: int = QUICK_VARIANTS
) -> pytest.MarkDecorator:
    """Parametrise a case: variant id → value, or tuple of values for several names.

    The first ``quick`` of a table are of the tier of their case, the others of tier full: put
    first what would break first.  Raises ValueError for an id that cannot
    be part of a case id.
    """
    for key in table:
        if not _VARIANT.fullmatch(key):
            raise ValueError(f"variant {key!r}: only [a-z0-9_.-]")
    several = "," in names
    parameters = [
        pytest.param(
            *(value if several else (value,)),
            id=key,
            marks=(FULL_MARK,) if number >= quick else (),
        )
        for number, (key, value) in enumerate(table.items())
    ]
    return VARIANTS_MARK(names, parameters)
