"""Guests that come up while cases are collected, for processes that are forked behind that."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from conformance.session.worker.worker import Worker
from vm.errors import VmError


class Prelaunch:
    """The workers of the first processes, made and launched before there are any.

    Their guests are children of the session, which ends them; a process that is forked has its own
    worker's and lets go of the others.
    """

    def __init__(self, make: Callable[[str], Worker]) -> None:
        """``make`` makes the worker of a process, by its name."""
        self._make = make
        self._session = os.getpid()
        self._workers: dict[str, Worker] = {}
        # Those that a process has taken over: kept, for in it we are not to reap what they started.
        self._left: dict[str, Worker] = {}

    def launch(self, name: str) -> None:
        """Let a guest come up for a process.  The first case that needs it tells what is wrong."""
        worker = self._workers[name] = self._make(name)
        with suppress(VmError, OSError):
            worker.launch()

    def take(self, name: str) -> Worker:
        """In a forked process: its worker, launched or not; nothing is left here of the others."""
        own = self._workers.pop(name, None)
        for other in list(self._workers):
            self.leave(other)
        return own or self._make(name)

    def leave(self, name: str) -> None:
        """Another process was forked that has taken it: our ends of it would keep it alive."""
        if (worker := self._workers.pop(name, None)) is not None:
            self._left[name] = worker
            worker.leave()

    def end(self, name: str) -> None:
        """In the session alone: nothing is left of the guest that was launched for a process."""
        if os.getpid() != self._session:
            return
        worker = self._workers.pop(name, None) or self._left.pop(name, None)
        if worker is not None:
            worker.end()

    def end_all(self) -> None:
        """The same for all of them."""
        for name in (*self._workers, *self._left):
            self.end(name)
