"""A profile that records what a program asks for: what its answers depend on."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from conformance.abi.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedProfile(Profile):
    """A profile that records which of its ``measured`` switches are read."""

    measured: frozenset[str]
    used: set[str] = field(default_factory=set, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, profile: Profile, measured: frozenset[str]) -> AdaptedProfile:
        """A profile with the same switches that records which of ``measured`` are read."""
        same = {each.name: getattr(profile, each.name) for each in fields(Profile)}
        return cls(**same, measured=measured)

    def has(self, switch: str) -> bool:
        """Whether a dated behaviour applies.  Raises KeyError for an unknown switch."""
        if switch in self.measured:
            self.used.add(switch)
        # Not super(): dataclass() makes a new class for the slots.
        return Profile.has(self, switch)
