"""Base releases that the suite was calibrated on: docs/results has a run of each.

The dated base switches are read in sources; only a run shows that none is missing.
"""

from __future__ import annotations

from conformance.abi.profile import ProfileError, Release

# One release per series that was booted, modified in user_events or outside of tracing at most.
CALIBRATED = tuple(
    map(
        Release.parse,
        (
            *("5.18.12", "5.19", "6.0.19", "6.1.192", "6.2.12", "6.3.8", "6.4.4", "6.5.3"),
            *("6.6.63", "6.7.3", "6.8.1", "6.9", "6.10", "6.11.11", "6.12.117", "6.13.7"),
            *("6.14", "6.17", "6.18.33", "6.19", "7.0", "7.1.5", "7.2.12", "7.3.4"),
        ),
    )
)


def warning(release: str) -> str:
    """One line about a base of a series that was never run, or later than the release of its series
    that was; "" for a calibrated one.

    ``release`` is that of the booted kernel; one that is no number is not compared.
    """
    try:
        base = Release.parse(release)
    except ProfileError:
        return ""
    nearest = min(CALIBRATED, key=lambda each: (_distance(base, each), each))
    if base.series == nearest.series and base <= nearest:
        return ""
    return f"base not calibrated: nearest {nearest}"


def _distance(one: Release, other: Release) -> int:
    """Mainline releases between two series; 6.0 followed 5.19, and 7.0 followed 6.19."""
    return abs(20 * one.major + one.minor - 20 * other.major - other.minor)
