"""Profiles: the behaviours that a kernel is expected to have.

A profile is a set of switches and the release that they follow from.  ``profile_for`` parses what
users write: a release number, then optional overrides, as in ``6.8,ebadf_when_disabled=no``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from conformance.abi.switch import Kind, Switch
from conformance.abi.switches import BY_NAME, DERIVED, SWITCHES
from conformance.abi.uapi import (
    USER_REG,
    USER_REG_BIT_STATUS,
    USER_REG_BYTE_STATUS,
    Layout,
)

_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
# The last minor number of each major one.
_LAST_MINOR = {5: 19, 6: 19}
# What an override says of a switch, and of a bug.
_TRUTH = {"yes": True, "no": False}
_STATE = {"fixed": True, "present": False}


class Generation(StrEnum):
    """How a program learns whether an event is enabled."""

    # A byte per event in a page mapped from user_events_mmap: "user_events: Enable user processes
    # to create and write to trace events" as first sent for review.
    RFC_V1 = "rfc-v1"
    # A byte per event in a page mapped from user_events_status.
    BYTE_STATUS = "byte-status"
    # A bit per event in that page: "tracing/user_events: Use bits vs bytes for enabled
    # status page data".
    BIT_STATUS = "bit-status"
    # A bit in memory of the program: "tracing/user_events: Use remote writes for event enablement".
    REMOTE_ENABLE = "remote-enable"


_FIRST_RELEASE = {
    # Never released: mainline was at 5.15 when the patch was sent.
    Generation.RFC_V1: (5, 15),
    Generation.BYTE_STATUS: (5, 18),
    Generation.BIT_STATUS: (6, 1),
    Generation.REMOTE_ENABLE: (6, 4),
}


class ProfileError(ValueError):
    """A text that is not a profile; the message shows the valid forms."""


class Release(Struct, frozen=True, order=True):
    """A kernel release as numbers; a suffix (``-rc2``, ``+``) is not compared."""

    major: int
    minor: int
    sublevel: int = 0

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read ``6.12``, ``6.12.117`` or ``6.12.117-uevt``.

        Raises ProfileError for a text that does not start with a release number.
        """
        found = _RELEASE.match(text)
        if found is None:
            raise ProfileError(f"{text!r} is not a kernel release; write it like 6.12 or 6.12.117")
        return cls(int(found[1]), int(found[2]), int(found[3] or 0))

    @property
    def series(self) -> tuple[int, int]:
        """(major, minor), the name of a stable series."""
        return self.major, self.minor

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + (f".{self.sublevel}" if self.sublevel else "")


class Named(Struct, frozen=True):
    """The release of a named profile, and the switches that differ from it."""

    release: Release
    differs: frozenset[str] = frozenset()


# The structure of DIAG_IOCSREG, and its member for the index in the status page.
USER_REG_OF: Mapping[Generation, Layout] = {
    Generation.BYTE_STATUS: USER_REG_BYTE_STATUS,
    Generation.BIT_STATUS: USER_REG_BIT_STATUS,
    Generation.REMOTE_ENABLE: USER_REG,
}
PLACE_MEMBER: Mapping[Generation, str] = {
    Generation.BYTE_STATUS: "status_index",
    Generation.BIT_STATUS: "status_bit",
}

# Generations as mainline released them, without stable backports, and merged states that were never
# released: the first commit, and the merge window of 5.18 up to "Remove eBPF interfaces".
NAMED = {
    Generation.BYTE_STATUS.value: Named(Release(5, 19)),
    Generation.BIT_STATUS.value: Named(Release(6, 1)),
    "merge-window": Named(Release(5, 18), frozenset({"bpf_iter_ignored", "bpf_programs_run"})),
    "first-commit": Named(
        Release(5, 18),
        frozenset(
            {
                "perf_sink",
                "print_fmt_generated",
                "deletion_arguments_matched",
                "unreadable_payload_refused",
                "payload_size_checked",
                "dynamic_fields_validated",
                "events_made_as_root",
                "bpf_iter_ignored",
                # Lost with "Optimize writing events by only copying data once", and restored in
                # 6.4.
                "empty_payload",
            }
        ),
    ),
    # Older than every switch of user_events; perf and BPF programs were supported at first.
    Generation.RFC_V1.value: Named(
        Release(*_FIRST_RELEASE[Generation.RFC_V1]),
        frozenset({"perf_sink", "bpf_programs_run"}),
    ),
}


class Profile(Struct, frozen=True):
    """The behaviours that a kernel is judged by."""

    name: str
    release: Release
    switches: frozenset[str]

    @property
    def generation(self) -> Generation:
        """The generation of the release."""
        return _generation_of(self.release.series)

    def has(self, switch: str) -> bool:
        """Whether a switch, or a behaviour derived from switches, is on.

        Raises KeyError for an unknown name.
        """
        if switch in DERIVED:
            return self._derived(switch)
        return BY_NAME[switch].name in self.switches

    def fixed(self, bug: str) -> bool:
        """Whether the kernel is expected not to have a known bug.

        Raises KeyError for an unknown id, ValueError for a switch that is none of a bug.
        """
        if not BY_NAME[bug].bug:
            raise ValueError(f"{bug} is no bug: ask has()")
        return self.has(bug)

    def _derived(self, name: str) -> bool:
        if name == "lasting_events":
            # In between, dynamic_events needs a flag that registration refuses.
            return not self.has("auto_delete") or self.has("persist")
        remote = self.generation is Generation.REMOTE_ENABLE
        if name == "remote_enable":
            return remote
        return not remote and self.generation is not Generation.RFC_V1


@cache
def _generation_of(series: tuple[int, int]) -> Generation:
    begun = (each for each in Generation if _FIRST_RELEASE[each] <= series)
    return max(begun, key=_FIRST_RELEASE.__getitem__)


def applies(switch: Switch, release: Release) -> bool:
    """Whether ``switch`` is on in ``release``, counting stable backports.

    That of a bug is on before the bug was introduced.
    """
    if not _introduced(switch, release):
        return True
    if release.series in switch.backports:
        return release.sublevel >= switch.backports[release.series]
    return switch.since is not None and release.series >= switch.since


def _introduced(switch: Switch, release: Release) -> bool:
    if release.series in switch.introduced_stable:
        return release.sublevel >= switch.introduced_stable[release.series]
    numbers = (*release.series, release.sublevel)
    return switch.introduced is None or numbers >= switch.introduced


@cache
def profile_for(abi: str, *, base: str | None = None) -> Profile:
    """The profile of ``abi``: a release number or name, and overrides.

    ``base`` is the running release, which determines the switches of the generic tracing code: so
    an older ABI on a newer release is judged correctly.  Raises ProfileError for the part that is
    wrong.
    """
    name, *overrides = [part.strip() for part in abi.split(",")]
    named = _named(name)
    release = named.release
    base_release = Release.parse(base) if base is not None else release
    on = {
        switch.name
        for switch in SWITCHES
        if applies(switch, release if switch.kind is Kind.USER_EVENTS else base_release)
    }
    profile = Profile(abi, release, named.differs ^ on)
    for text in overrides:
        profile = _override(profile, text)
    return profile


def on_release(abi: str, release: str) -> str:
    """An ABI for a running release: of its series, which names no sublevel, that release."""
    name, comma, overrides = abi.partition(",")
    series = re.fullmatch(r"\s*(\d+)\.(\d+)\s*", name)
    running = _RELEASE.match(release)
    if series is None or running is None or series.groups() != running.groups()[:2]:
        return abi
    return f"{Release.parse(release)}{comma}{overrides}"


def _named(name: str) -> Named:
    if name in NAMED:
        return NAMED[name]
    for known in NAMED:
        if known in name:
            raise ProfileError(f"{name!r} is not an ABI; write {known}, then switches")
    try:
        release = Release.parse(name)
    except ProfileError as error:
        raise ProfileError(f"{error}, or {' or '.join(NAMED)}") from None
    first = _FIRST_RELEASE[Generation.BYTE_STATUS]
    if release.series < first:
        raise ProfileError(f"no profile for {name}: user_events came with {first[0]}.{first[1]}")
    last = _LAST_MINOR.get(release.major, release.minor)
    if release.minor > last:
        after = f"{release.major + 1}.0 followed {release.major}.{last}"
        raise ProfileError(f"there is no Linux {name}: {after}")
    return Named(release)


def _override(profile: Profile, text: str) -> Profile:
    name, _, state = text.partition("=")
    switch = BY_NAME.get(name)
    states = _STATE if switch is not None and switch.bug else _TRUTH
    if state not in states:
        forms = " or ".join(f"{'BUG' if states is _STATE else 'SWITCH'}={each}" for each in states)
        raise ProfileError(f"{text!r} is not an override; write {forms}")
    if switch is None:
        from difflib import get_close_matches  # 10 ms that correct names do not need

        close = get_close_matches(name, BY_NAME, n=1)
        hint = f"did you mean {close[0]}?" if close else "docs/abi.md lists them"
        raise ProfileError(f"unknown switch or bug {name!r}; {hint}")
    on = profile.switches | {name} if states[state] else profile.switches - {name}
    return replace(profile, switches=on)


def in_range(text: str, profile: Profile) -> bool:
    """Whether a profile is in a range such as ``6.4..6.6``, ``6.7..`` or ``6.12``.

    Both ends are series and inclusive.  rfc-v1 is in the range ``rfc-v1`` and in no other.
    Raises ProfileError for a malformed range.
    """
    if Generation.RFC_V1 in (text, profile.generation):
        return text == profile.generation
    first, dots, last = text.partition("..")
    low = Release.parse(first).series
    if not dots:
        return profile.release.series == low
    high = Release.parse(last).series if last else None
    return low <= profile.release.series and (high is None or profile.release.series <= high)
