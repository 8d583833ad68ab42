"""Shards run where there is what they need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.cli.matrix import kernel_state, resources
from conformance.cli.matrix.controller import Matrix
from conformance.cli.matrix.kernel_spec import KernelSpec
from conformance.cli.matrix.tasks import Built, build
from kernels.store.built_kernel import BuiltKernel
from tests.matrix.matrices import kernel_spec, offering
from tests.test_shards import results

pytest.importorskip("distributed")


def built(spec: KernelSpec) -> Built:
    """Builds the model only."""
    return build(spec) if spec.entry is None else Built(("status.file_mode",), "")


def test_workers_of_a_machine_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "free_mib", lambda: 4000)
    monkeypatch.setattr(resources, "_accelerator", lambda: "kvm")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    alone, third = resources.offered(8), resources.offered(1, share=3, least_mib=1324)
    of_machine = {resources.machine(): 8}
    assert alone == {"vm": 8, "kvm": 8, "cores": 4, "mib": 4000, **of_machine}
    assert (third["cores"], third["mib"]) == (1, 1333)
    plain, debug = (resources.of_shard(mib, "kvm") for mib in (812, 1324))
    assert (resources.room(plain, alone), resources.room(debug, alone)) == (4, 3)
    assert resources.room(resources.of_shard(812, "tcg"), alone) == 0
    assert resources.room(plain, {"vm": 4}) == 0


@pytest.mark.filterwarnings("ignore")
def test_shards_of_a_kernel_run_with_one_accelerator(
    built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    """That of most guests: one worker says that it has KVM."""
    mixed = {"vm": 1, "cores": 1, "mib": 4000}
    spec = kernel_spec(built_kernel.kernel_id, "status.write or status.file_mode")
    with offering({**mixed, "kvm": 1}, {**mixed, "tcg": 1}, {**mixed, "tcg": 1}) as client:
        matrix = Matrix(client, tmp_path, [spec], 2)
        matrix.run(lambda _: None)
    assert matrix.errors == {}
    shards = results(tmp_path / spec.id)["summary"]["shards"]
    assert {each["node"].rpartition(", ")[2] for each in shards} <= {"worker 1", "worker 2"}


@pytest.mark.filterwarnings("ignore")
def test_guests_need_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that no worker has the memory for is not judged, the others are."""
    monkeypatch.setattr(kernel_state, "_ALONE_S", 3.0)
    specs = [kernel_spec("model", "status.write"), kernel_spec("6.12", "", flavour="debug")]
    with offering({"vm": 4, "cores": 4, "tcg": 4, "mib": 1000}) as client:
        matrix = Matrix(client, tmp_path, specs, 1, building=built)
        matrix.run(lambda _: None)
    assert matrix.judged == ["model"]
    assert matrix.errors == {
        "6.12~debug": "no worker offers vm=1, cores=1, mib=1324, tcg=1; see uevt worker"
    }
