"""Forked processes: a signal at any moment ends them, and never leads back to their parent."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from typing import NoReturn

import pytest

from conformance.session.pool.worker_process import reap, run_to_end, start


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_while_it_ends_does_not_cut_short_what_it_cleans_up() -> None:
    def serve(parent: Connection) -> NoReturn:
        def finish() -> None:
            terminate()
            parent.send("finished")

        run_to_end("uevt test", lambda: None, parent.send, finish)

    pid, connection = start(serve, [])
    assert connection.recv() == "finished"
    assert reap(pid, 60) == "exit code 0"


def test_a_signal_before_its_work_ends_it(capfd: pytest.CaptureFixture[str]) -> None:
    def serve(_: Connection) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        terminate()
        raise AssertionError("it went on")

    pid, _ = start(serve, [])
    assert reap(pid, 60) == "exit code 1"
    assert "KeyboardInterrupt" in capfd.readouterr().err
