"""Guests that are launched before their workers: each is used or ended."""

from __future__ import annotations

import os
from typing import Any, cast

import pytest

from conformance.session.pool.prelaunch import Prelaunch
from conformance.session.worker.worker import Worker
from vm.errors import HostTrouble


class Workers:
    """Workers that record their calls."""

    def __init__(self, *broken: str) -> None:
        self.broken = broken
        self.done: list[str] = []

    def make(self, name: str) -> Worker:
        return cast("Worker", _Worker(self, name))


class _Worker:
    def __init__(self, workers: Workers, name: str) -> None:
        self.workers, self.name = workers, name

    def __getattr__(self, what: str) -> Any:
        def do() -> None:
            self.workers.done.append(f"{what} {self.name}")
            if what == "launch" and self.name in self.workers.broken:
                raise HostTrouble("no QEMU")

        return do


def launched(*broken: str) -> tuple[Workers, Prelaunch]:
    """Two launched workers."""
    workers = Workers(*broken)
    prelaunch = Prelaunch(workers.make)
    for name in ("gw0", "gw1"):
        prelaunch.launch(name)
    assert workers.done == ["launch gw0", "launch gw1"]
    workers.done.clear()
    return workers, prelaunch


def test_process_keeps_its_own_worker_and_closes_the_others() -> None:
    workers, prelaunch = launched()
    worker = cast("_Worker", prelaunch.take("gw1"))
    assert (worker.name, workers.done) == ("gw1", ["hand_over gw0"])


def test_missing_worker_is_created() -> None:
    workers, prelaunch = launched()
    prelaunch.hand_over("gw0")
    worker = cast("_Worker", prelaunch.take("gw2"))
    assert (worker.name, workers.done) == ("gw2", ["hand_over gw0", "hand_over gw1"])


def test_session_ends_launched_guests() -> None:
    workers, prelaunch = launched()
    prelaunch.hand_over("gw0")
    prelaunch.end("gw0")
    prelaunch.end("gw0")
    prelaunch.end_all()
    prelaunch.end_all()
    assert workers.done == ["hand_over gw0", "end gw0", "end gw1"]


def test_forked_process_ends_no_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, prelaunch = launched()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    prelaunch.end("gw0")
    prelaunch.end_all()
    assert workers.done == []


def test_launch_errors_are_left_to_the_first_case() -> None:
    workers, prelaunch = launched("gw0")
    assert cast("_Worker", prelaunch.take("gw0")).name == "gw0"
    assert workers.done == ["hand_over gw1"]
