"""`python -m tests.torture.matrix KERNEL…`: matrices that lose workers and connections.

Each round judges the kernels on three workers of a scheduler; at random moments one worker is
killed, one stopped, and the connections of one to the scheduler are cut.  Every case must have
exactly one result, that of a local run.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.enclosure import Runs
from tests.matrix.matrices import EXPRESSION, dask_scheduler, start, workers
from tests.test_shards import digests

_SHARDS = 4
# Disturbances come within so many seconds after the first kernel is built.
_WITHIN_S = 20.0
_ROUND_S = 600.0
# The scheduler gives up a worker that is silent for so long.
_SILENT_S = 8
_CHUNK = 1 << 16


class Proxy:
    """Forwards connections to a port of this machine, until they are cut.

    They are cut once when ``cut_after`` bytes were ``forwarded``.
    """

    def __init__(self, to: int, cut_after: int | None = None) -> None:
        self._to = to
        self._cut_after = cut_after
        self.forwarded = 0
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections; new ones are accepted."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all connections, and accept none."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
                self.forwarded += len(data)
                if self._cut_after is not None and self.forwarded >= self._cut_after:
                    self._cut_after = None
                    self.cut()
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def disturbed(place: Runs, kernels: Sequence[str], out: Path, chance: Random) -> list[str]:
    """Judge kernels while workers die, stop and are cut off; what was wrong."""
    wrong = []
    silent = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{_SILENT_S}s"}
    with dask_scheduler(place, **silent) as (_, at):
        proxy = Proxy(int(at.rpartition(":")[2]))
        started = [
            start(place, "worker", at, "--vms=1", f"--name={name}") for name in ("first", "second")
        ]
        words = [f"tcp://127.0.0.1:{proxy.port}", "--vms=1", "--name=third"]
        started.append(start(place, "worker", *words))
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        words = [f"--out={out}", f"-k={EXPRESSION}", f"--shards={_SHARDS}"]
        matrix = start(place, "matrix", *kernels, *words, f"--scheduler={at}")
        try:
            moments = sorted(chance.uniform(0, _WITHIN_S) for _ in range(3))
            deeds = [signal.SIGKILL, signal.SIGSTOP, None]
            chance.shuffle(deeds)
            began = time.monotonic()
            for moment, deed in zip(moments, deeds, strict=True):
                time.sleep(max(0.0, began + moment - time.monotonic()))
                if matrix.poll() is not None:
                    break
                if deed is None:
                    proxy.cut()
                else:
                    with suppress(ProcessLookupError):
                        os.kill(chance.choice(workers(place)), deed)
                sys.stdout.write(f"  {moment:.1f} s: {deed.name if deed else 'cut'}\n")
            output, _ = matrix.communicate(timeout=_ROUND_S)
            if matrix.returncode:
                wrong.append(f"exit code {matrix.returncode}: {output}")
        finally:
            for process in (*started, matrix):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGCONT)
                    os.killpg(process.pid, signal.SIGTERM)
            proxy.close()
    for process in started:
        process.communicate(timeout=_ROUND_S)
    return wrong + place.left()


def main() -> int:
    """Run the rounds; 1 if anything was lost, doubled, different or left."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.matrix")
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="uevt-matrix-", dir="/var/tmp") as name:
        place = Runs(Path(name, "place"), arguments.kernels[0])
        local = {}
        for kernel in arguments.kernels:
            out = Path(name, f"local-{kernel}")
            place.run(f"--kernel={kernel}", f"-k={EXPRESSION}", "--guests=1", f"--out={out}")
            local[kernel] = digests(out)
        for number in range(arguments.rounds):
            began = time.monotonic()
            out = Path(name, f"round-{number}")
            chance = Random(f"{arguments.seed} {number}")
            wrong = disturbed(place, arguments.kernels, out, chance)
            for kernel, expected in local.items():
                if not (out / kernel / "results.json").exists():
                    wrong.append(f"{kernel} has no results")
                elif digests(out / kernel) != expected:
                    wrong.append(f"{kernel} has other results")
            failed += bool(wrong)
            seconds = time.monotonic() - began
            sys.stdout.write(f"round {number}: {seconds:.0f} s {'; '.join(wrong) or 'ok'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{arguments.rounds - failed} of {arguments.rounds} rounds as local runs\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
