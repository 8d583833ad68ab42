"""The profile of `make fuzz`: many random examples, where `make test` takes few fixed ones."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz",
    max_examples=10_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
