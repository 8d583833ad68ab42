"""Loaded eBPF programs and the verifier's log buffer."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.ops import Observation


@dataclass(frozen=True, slots=True)
class LogBuffer:
    """Buffer of the verifier's log."""

    level: int = 1
    size: int = 0
    address: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Result of BPF_PROG_LOAD."""

    loaded: Observation
    slot: int

    @property
    def errno(self) -> str:
        """Name of the error, "" on success."""
        return self.loaded.errno
