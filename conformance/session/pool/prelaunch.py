"""Launch guests while cases are collected, before their workers are forked."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from conformance.session.worker.worker import Worker
from vm.errors import VmError


class Prelaunch:
    """Workers that are launched before the processes that use them exist.

    Their guests are children of this session, which ends them.  A forked process keeps its own and
    closes the others.
    """

    def __init__(self, make: Callable[[str], Worker]) -> None:
        """``make`` creates a worker by its name."""
        self._make = make
        self._session = os.getpid()
        self._workers: dict[str, Worker] = {}
        # Workers used by a forked process: referenced, so that their children are not reaped here.
        self._handed_over: dict[str, Worker] = {}

    def launch(self, name: str) -> None:
        """Launch the guest of a worker.  The first case that uses it reports errors."""
        worker = self._workers[name] = self._make(name)
        with suppress(VmError, OSError):
            worker.launch()

    def take(self, name: str) -> Worker:
        """In a forked process: its own worker, launched or not; the others are closed."""
        own = self._workers.pop(name, None)
        for other in list(self._workers):
            self.hand_over(other)
        return own or self._make(name)

    def hand_over(self, name: str) -> None:
        """Close our ends of a worker that a forked process uses: they would keep it alive."""
        if (worker := self._workers.pop(name, None)) is not None:
            self._handed_over[name] = worker
            worker.hand_over()

    def end(self, name: str) -> None:
        """In the session alone: end the guest that was launched for a worker."""
        if os.getpid() != self._session:
            return
        worker = self._workers.pop(name, None) or self._handed_over.pop(name, None)
        if worker is not None:
            worker.end()

    def end_all(self) -> None:
        """End all of them."""
        for name in (*self._workers, *self._handed_over):
            self.end(name)
