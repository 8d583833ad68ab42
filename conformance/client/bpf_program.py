"""A program of eBPF as it was loaded, and where the verifier's log went."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.ops import Observation


@dataclass(frozen=True, slots=True)
class LogBuffer:
    """Where the verifier's log goes."""

    level: int = 1
    size: int = 0
    address: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """A program as it was loaded, or not."""

    loaded: Observation
    slot: int

    @property
    def errno(self) -> str:
        """Why it was not; "" if it was."""
        return self.loaded.errno
