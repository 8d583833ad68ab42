"""`uevt run --here` in a guest: its outcomes, what it restores, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from conformance.session.program_guest import program_guest
from conformance.session.target.target import Target, prove_accelerator
from host.deadline import Deadline
from kernels.store.built_kernel import BuiltKernel

ROOT = Path(__file__).parents[3]
# Two processors: cases about several run as well.
SECONDS = 900.0
Found = dict[str, Any]


@pytest.fixture(scope="module")
def found(built_kernel: BuiltKernel, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What scenario.py found in a guest."""
    work = tmp_path_factory.mktemp("here")
    target = Target(
        built_kernel.kernel_id,
        built_kernel.abi,
        release=built_kernel.release,
        image=built_kernel.image,
        accelerator=prove_accelerator(built_kernel.image),
        memory_mib=768,
    )
    with (
        program_guest(target, work, more=[ROOT, Path(sys.base_prefix).resolve()]) as guest,
        (work / "out").open("wb") as out,
        Path("/dev/null").open("rb") as nothing,
    ):
        command = f"cd {ROOT} && UEVT_CACHE=/tmp/cache {sys.executable} -m {SCENARIO}"
        descriptors = (nothing.fileno(), out.fileno(), 2)
        code = guest.run(
            ["sh", "-c", command],
            descriptors=descriptors,
            deadline=Deadline(SECONDS, "end of the scenario"),
        )
    assert code == 0
    whole: Found = json.loads((work / "out").read_text())
    return whole


SCENARIO = "tests.session.here.scenario"


def test_outcomes_are_those_of_a_guest(found: Found) -> None:
    recorded = json.loads((ROOT / "docs/results/6.12.json").read_text())
    outside = {case: words.split()[0] for case, words in recorded["outcomes"].items()}
    judged = {case: o for case, (o, _) in found["outcomes"].items() if o != "SKIP"}
    assert judged == {case: outside[case] for case in judged}
    assert len(judged) > 10
