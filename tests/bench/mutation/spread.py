"""Work that is spread over processes with a guest each."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

from conformance.session.pool.worker_process import start

Perform = Callable[[Path, Sequence[int]], Iterator[Any]]
"""Yields something for each item of a share; the directory is its own."""
# Seconds without a result after which the processes are given up.
_SILENT_S = 600.0


def spread(
    perform: Perform, directory: Path, todo: Sequence[int], log: Path | None = None
) -> Iterator[Any]:
    """What ``perform`` yields, as it comes, also appended to a file as JSON lines."""
    processes = os.cpu_count() or 1
    pids, left = [], list[Connection]()
    for name in range(processes):
        serve = partial(_serve, perform, directory / str(name), todo[name::processes])
        pid, connection = start(serve, left)
        pids.append(pid)
        left.append(connection)
    while left:
        if not (some := wait(left, _SILENT_S)):
            raise SystemExit(f"no mutant was judged for {_SILENT_S:g} s")
        for ready in some:
            assert isinstance(ready, Connection)
            try:
                item = ready.recv()
            except EOFError:
                left.remove(ready)
                continue
            if log is not None:
                with log.open("a") as file:
                    file.write(json.dumps(item) + "\n")
            yield item
    ends = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(ends):
        raise SystemExit("a process failed: the results are not all")


def _serve(perform: Perform, directory: Path, share: Sequence[int], parent: Connection) -> NoReturn:
    try:
        for item in perform(directory, share):
            parent.send(item)
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
