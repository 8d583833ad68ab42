"""A profile that records what a program asks for: what its answers depend on."""

from __future__ import annotations

from msgspec import field

from conformance.abi.profile import Profile


class AdaptedProfile(Profile, frozen=True, eq=False, kw_only=True):
    """A profile that records which of its ``measured`` switches are read, in ``used``.

    It is equal to itself only.
    """

    measured: frozenset[str]
    used: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, profile: Profile, measured: frozenset[str]) -> AdaptedProfile:
        """A profile with the same switches that records which of ``measured`` are read."""
        same = {name: getattr(profile, name) for name in Profile.__struct_fields__}
        return cls(**same, measured=measured)

    def has(self, switch: str) -> bool:
        """Whether a dated behaviour applies.  Raises KeyError for an unknown switch."""
        if switch in self.measured:
            self.used.add(switch)
        return super().has(switch)
