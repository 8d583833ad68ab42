"""`uevt run --here` in a guest: its outcomes, what it restores, and what it refuses."""

from __future__ import annotations

import compileall
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.session.program_guest import program_guest
from conformance.session.target.target import Target, prove_accelerator
from kernels.store.built_kernel import BuiltKernel
from vm.recorder.program import compile_recorder

ROOT = Path(__file__).parents[3]
SCENARIO = "tests.session.here.scenario"
SECONDS = 200.0
Step = dict[str, Any]


@pytest.fixture(scope="module")
def steps(built_kernel: BuiltKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    """The steps of scenario.py in one guest, by name."""
    work = tmp_path_factory.mktemp("here")
    accelerator = prove_accelerator(built_kernel.image)
    target = Target(
        built_kernel.kernel_id,
        built_kernel.abi,
        release=built_kernel.release,
        image=built_kernel.image,
        accelerator=accelerator,
        memory_mib=768,
    )
    # Here, and not in the guest: that takes minutes.
    compile_recorder(work / "recorder")
    for each in ("conformance", "host", "kernels", "vm"):
        assert compileall.compile_dir(ROOT / each, quiet=1)
    client = ROOT / "fixtures/clients/parts.c"
    subprocess.run(["gcc", "-o", work / "parts", client], check=True, timeout=60)
    suite = [ROOT, Path(sys.base_prefix).resolve()]
    # Without git: it would look at every file of the checkout in each run.
    variables = "UEVT_CACHE=/tmp/cache PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 GIT_DIR=/nowhere"
    command = f"cd {ROOT} && {variables} {sys.executable} -m {SCENARIO}"
    with (
        program_guest(target, work, more=suite) as guest,
        (work / "steps").open("wb") as out,
        (work / "errors").open("wb") as errors,
        Path("/dev/null").open("rb") as nothing,
    ):
        deadline = guest.machine.deadline(SECONDS, "end of the scenario")
        code = guest.run(
            # Its own limit is shorter, so that it can say what it waited for.
            ["sh", "-c", f"{command} {0.9 * deadline.seconds}"],
            descriptors=(nothing.fileno(), out.fileno(), errors.fileno()),
            deadline=deadline,
        )
    assert code == 0, (work / "errors").read_text()
    found = map(json.loads, (work / "steps").read_text().splitlines())
    return {step["step"]: step for step in found}


def test_judges_like_a_run_from_outside(steps: dict[str, Step]) -> None:
    whole = steps["resumed"]
    assert whole["code"] == 0, whole["errors"]
    outside = json.loads((ROOT / "docs/results/6.12.json").read_text())["cases"]
    judged = {name: o for name, (o, _) in whole["outcomes"].items() if o != "SKIP"}
    assert judged == {name: outside[name][0] for name in judged}
    assert len(judged) >= 10


def test_skips_with_a_reason(steps: dict[str, Step]) -> None:
    outcomes = steps["resumed"]["outcomes"]
    skipped = {name: reason for name, (o, reason) in outcomes.items() if o == "SKIP"}
    assert skipped == {
        "dated.empty_cpumask_refused": "running_kernel",
        "eprobe.holds_the_event.dynamic_events": "running_kernel",
        "eprobe.holds_the_event.ioctl": "running_kernel",
    }


@pytest.mark.parametrize("step", ["interrupted", "resumed", "client", "foreign", "even_so"])
def test_leaves_the_system_as_it_was(steps: dict[str, Step], step: str) -> None:
    assert steps[step]["changed"] == {}


def test_ends_in_order_when_it_is_interrupted(steps: dict[str, Step]) -> None:
    interrupted = steps["interrupted"]
    assert (interrupted["code"], interrupted["state"], interrupted["agents"]) == (130, False, 0)


def test_a_killed_run_leaves_no_process(steps: dict[str, Step]) -> None:
    killed = steps["killed"]
    assert (killed["code"], killed["state"], killed["agents"]) == (-9, True, 0)


def test_the_next_run_restores_first(steps: dict[str, Step]) -> None:
    left = {name.rpartition("/")[2] for name in steps["killed"]["changed"]}
    assert left >= {"tracing_on", "user_events_max", "user_events_data", "instances"}
    assert steps["resumed"]["errors"].splitlines()[:2] == [
        "uevt: restoring the system after a run --here that was killed",
        "uevt: restored",
    ]


def test_a_program_is_judged(steps: dict[str, Step]) -> None:
    assert steps["client"]["errors"] == ""
    assert (steps["client"]["code"], steps["client"]["out"].splitlines()[-1]) == (
        4,
        "uevt: 6 calls, 1 refused as the ABI says: mistakes of the program; 1 event, 3 records "
        "read back byte for byte",
    )


def test_a_second_run_is_refused(steps: dict[str, Step]) -> None:
    second = steps["killed"]["second"]
    assert second["code"] == 2
    assert "another run --here is in progress: process " in second["errors"]


def test_user_events_of_others_are_named(steps: dict[str, Step]) -> None:
    """A lab skips such a system: see tests/install."""
    refused = steps["foreign"]
    assert refused["code"] == 2
    assert "1 user event of other programs: somebody; end these programs" in refused["errors"]


def test_even_so_leaves_them_alone(steps: dict[str, Step]) -> None:
    even_so = steps["even_so"]
    assert even_so["code"] == 0
    assert even_so["outcomes"] == {
        "write.returns_all_bytes.u8": ["PASS", ""],
        "limits.shared": ["SKIP", "running_kernel"],
    }
