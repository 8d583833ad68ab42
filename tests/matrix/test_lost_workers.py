"""`uevt matrix`: nothing is lost and nothing counted twice when workers die."""

from __future__ import annotations

import json
import math
import os
import platform
import signal
import sys
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from conformance.cli.matrix import controller, tasks
from conformance.cli.matrix.cluster import connected
from conformance.cli.matrix.controller import Matrix
from conformance.cli.matrix.kernel_spec import KernelSpec
from conformance.cli.matrix.resources import machine
from conformance.cli.matrix.tasks import Built, Judged, TaskFailed, TaskHung, judge
from host.deadline import Deadline
from kernels.errors import HostTrouble
from kernels.store.built_kernel import BuiltKernel
from tests.conftest import Uevt
from tests.enclosure import Enclosure, Runs
from tests.matrix.matrices import (
    CASES,
    EXPRESSION,
    SECONDS,
    dask_scheduler,
    dask_worker,
    ended,
    kernel_spec,
    matrix_words,
    start,
    wait_for,
    workers,
)
from tests.test_shards import digests, results

pytest.importorskip("distributed")


def test_dead_and_stopped_workers_lose_nothing(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    """Two kernels, three workers; one is killed, one stopped, at moments that are printed."""
    place, out, chance = Runs(tmp_path, built_kernel.kernel_id), tmp_path / "out", Random(7)
    kernels = [built_kernel.kernel_id, "model"]
    process = start(place, *matrix_words(out, kernels))
    wait_for(process, "judging, 0/")
    for number in (signal.SIGKILL, signal.SIGSTOP):
        time.sleep(moment := chance.uniform(0, 2))
        alive = workers(place)
        sys.stdout.write(f"{number.name} after {moment:.3f} s, workers {alive}\n")
        os.kill(chance.choice(alive), number)
    output = ended(process)
    assert output.count(f"self-check ok: {CASES} cases") == 1
    assert output.count(f"PASS: {CASES - 1} passed") == 1
    local = tmp_path / "local"
    few = (f"--kernel={kernels[0]}", f"-k={EXPRESSION}", "--guests=1", f"--out={local}")
    assert place.run(*few) == (0, "")
    assert digests(out / kernels[0]) == digests(local)
    for kernel in kernels:
        shards = results(out / kernel)["summary"]["shards"]
        assert all("worker" in each["node"] for each in shards)
        assert len(digests(out / kernel)) == CASES
    assert "status.totals.one_idle" in (out / "report.html").read_text()
    assert not (out / ".shards" / built_kernel.kernel_id).exists()
    assert place.left() == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 130)]
)
def test_killed_controller_is_resumed(
    uevt: Uevt, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    place, out = Runs(tmp_path, "model"), tmp_path / "out"
    process = start(place, *matrix_words(out, ["model"]))
    wait_for(process, r"judging, [1-9]")
    process.send_signal(number)
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    if code == 130:
        assert f"to go on: uevt matrix --resume {out}" in output
        assert place.left() == []
        return
    assert list((out / ".shards" / "model").glob("*-of-3/results.json"))
    deadline = Deadline(20.0, "end of the workers")
    while place.processes():
        deadline.pause(0.1)
    output = ended(start(place, "matrix", f"--resume={out}", "--workers=2"))
    assert "judging, 0/" not in output
    assert f"self-check ok: {CASES} cases" in output
    assert len(digests(out / "model")) == CASES
    # Nothing is left to do.
    assert f"self-check ok: {CASES} cases" in uevt("matrix", "--resume", out).out


def deadly(
    directory: Path, times: float, built: Built, spec: KernelSpec, part: str, *others: Any
) -> Judged:
    """Judge a shard, and die so often if it has the culprit."""
    from conformance.session.shards import shard

    if "status.file_mode" in shard(part, built.ids).cases:
        died = directory / "died"
        with died.open("a+") as file:
            file.write("x")
        if died.stat().st_size <= times:
            os._exit(1)
    return judge(built, spec, part, *others)


def broken(*_: object) -> Judged:
    """Fails without ending its worker."""
    raise OSError("no room")


def send_tasks_of_this_module() -> None:
    """Workers cannot import it by its name."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def judged(directory: Path, judging: Any) -> Matrix:
    """A matrix of the model with this task.  Its workers start quickly, and often."""
    import dask

    send_tasks_of_this_module()
    spec = kernel_spec("model", "status.file_mode or status.write")
    forking = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(forking), connected(Namespace(scheduler=None), 2) as client:
        matrix = Matrix(client, directory, [spec], 1, judging=judging)
        matrix.run(lambda _: None)
    return matrix


@pytest.mark.filterwarnings("ignore")
def test_case_whose_workers_died_of_something_else_is_judged(tmp_path: Path) -> None:
    """dask counts the death of a worker against every task that it has.

    It dies twice with both cases, and twice with the first one.
    """
    matrix = judged(tmp_path, partial(deadly, tmp_path, 4))
    assert matrix.errors == {}
    found = results(tmp_path / "model")["cases"]
    assert {case["outcome"] for case in found} <= {"PASS", "XFAIL"}
    assert len(found) == 2


@pytest.mark.filterwarnings("ignore")
def test_case_that_kills_workers_is_found(tmp_path: Path) -> None:
    matrix = judged(tmp_path, partial(deadly, tmp_path, math.inf))
    assert matrix.errors == {}
    found = {case["id"]: case for case in results(tmp_path / "model")["cases"]}
    assert len(found) == 2
    culprit = found.pop("status.file_mode")
    assert (culprit["outcome"], culprit["blame"]) == ("ERROR", "host")
    assert "the workers that ran it died" in culprit["reason"]
    assert {case["outcome"] for case in found.values()} <= {"PASS", "XFAIL"}


@pytest.mark.filterwarnings("ignore")
def test_task_that_fails_is_not_tried_for_ever(tmp_path: Path) -> None:
    matrix = judged(tmp_path, broken)
    assert "no room" in matrix.errors["model"]
    assert matrix.judged == []


def test_an_error_names_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_worker", Mock())
    # A build on behalf of a shard.
    with pytest.raises(TaskFailed) as failed, tasks._failing(), tasks._failing():
        raise OSError("no room")
    assert str(failed.value) == f"{platform.node()}: no room"
    with pytest.raises(TaskHung) as hung:
        tasks._run(["true"], 0.0)
    assert str(hung.value) == f"{platform.node()}: it did not end in 0 s"


def without_room(directory: Path, *given: Any) -> Judged:
    """Judge, but never at the worker that gets it first."""
    from distributed import get_worker

    here, first = get_worker().contact_address, directory / "first"
    if not first.exists():
        first.write_text(here)
    if first.read_text() == here:
        raise TaskFailed("no room", here)
    return judge(*given)


@pytest.mark.filterwarnings("ignore")
def test_task_that_fails_is_tried_at_another_worker(tmp_path: Path) -> None:
    matrix = judged(tmp_path, partial(without_room, tmp_path))
    assert matrix.errors == {}
    assert matrix.judged == ["model"]


def of_another_suite(built: Built, spec: KernelSpec, part: str, *others: Any) -> Judged:
    """Judge a shard by another revision of the suite."""
    result = judge(built, spec, part, *others)
    content = json.loads(result.files["results.json"])
    content["suite"] = "v0.0-1-gabc"
    return replace(result, files={"results.json": json.dumps(content).encode()})


@pytest.mark.filterwarnings("ignore")
def test_results_of_another_suite_are_refused_and_not_taken_up(tmp_path: Path) -> None:
    matrix = judged(tmp_path, of_another_suite)
    assert " has suite v0.0-1-gabc (" in matrix.errors["model"]
    assert list((tmp_path / ".shards" / "model").glob("*-of-1/results.json"))
    # As by --resume.
    matrix = judged(tmp_path, judge)
    assert matrix.errors == {}
    assert len(results(tmp_path / "model")["cases"]) == 2


def never_ends(*_: object) -> Judged:
    """Judges until its worker ends."""
    time.sleep(SECONDS)
    raise AssertionError


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (signal.SIGKILL, "the scheduler has ended"),
        (signal.SIGTERM, "the scheduler has ended"),
        (signal.SIGSTOP, "the scheduler has not answered for 5 s"),
    ],
)
def test_end_of_the_scheduler_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, what: str
) -> None:
    monkeypatch.setattr(controller, "_ANSWER_S", 5)
    send_tasks_of_this_module()
    place = Enclosure(tmp_path / "place")
    with dask_scheduler(place) as (scheduler, at):
        worker = dask_worker(place, at, "only", {"vm": 1, "cores": 1, "mib": 4000, machine(): 1})

        def end_it(_: int) -> None:
            if matrix.columns[0].state == "judging" and matrix._running:
                scheduler.send_signal(number)

        try:
            spec = kernel_spec("model", "status.file_mode")
            here = Namespace(scheduler=at, tls_ca=None, tls_cert=None, tls_key=None)
            with connected(here, 1) as client:
                matrix = Matrix(client, tmp_path / "out", [spec], 1, judging=never_ends)
                with pytest.raises(HostTrouble, match=what) as raised:
                    matrix.run(end_it)
            assert raised.value.hint == f"to go on: uevt matrix --resume {tmp_path / 'out'}"
        finally:
            scheduler.send_signal(signal.SIGCONT)
            worker.kill()
            worker.wait()
