"""Guests that come up before there are processes for them: none is lost, none is left."""

from __future__ import annotations

import os
from typing import Any, cast

import pytest

from conformance.session.pool.prelaunch import Prelaunch
from conformance.session.worker.worker import Worker
from vm.errors import HostTrouble


class Crew:
    """Workers that only tell what is done with them."""

    def __init__(self, *broken: str) -> None:
        self.broken = broken
        self.done: list[str] = []

    def make(self, name: str) -> Worker:
        return cast("Worker", _Worker(self, name))


class _Worker:
    def __init__(self, crew: Crew, name: str) -> None:
        self.crew, self.name = crew, name

    def __getattr__(self, what: str) -> Any:
        def do() -> None:
            self.crew.done.append(f"{what} {self.name}")
            if what == "launch" and self.name in self.crew.broken:
                raise HostTrouble("no QEMU")

        return do


def launched(*broken: str) -> tuple[Crew, Prelaunch]:
    """Two of them, whose guests come up."""
    crew = Crew(*broken)
    ahead = Prelaunch(crew.make)
    for name in ("gw0", "gw1"):
        ahead.launch(name)
    assert crew.done == ["launch gw0", "launch gw1"]
    crew.done.clear()
    return crew, ahead


def test_process_keeps_its_own_worker_and_closes_the_others() -> None:
    crew, ahead = launched()
    worker = cast("_Worker", ahead.take("gw1"))
    assert (worker.name, crew.done) == ("gw1", ["leave gw0"])


def test_missing_worker_is_created() -> None:
    crew, ahead = launched()
    ahead.hand_over("gw0")
    worker = cast("_Worker", ahead.take("gw2"))
    assert (worker.name, crew.done) == ("gw2", ["leave gw0", "leave gw1"])


def test_session_ends_launched_guests() -> None:
    crew, ahead = launched()
    ahead.hand_over("gw0")
    ahead.end("gw0")
    ahead.end("gw0")
    ahead.end_all()
    ahead.end_all()
    assert crew.done == ["leave gw0", "end gw0", "end gw1"]


def test_forked_process_ends_no_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    crew, ahead = launched()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    ahead.end("gw0")
    ahead.end_all()
    assert crew.done == []


def test_launch_errors_are_left_to_the_first_case() -> None:
    crew, ahead = launched("gw0")
    assert cast("_Worker", ahead.take("gw0")).name == "gw0"
    assert crew.done == ["leave gw1"]
