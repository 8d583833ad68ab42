"""`uevt matrix`: nothing is lost and nothing counted twice when workers die."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conformance.cli.matrix.cluster import connected, is_loopback, security_of
from conformance.cli.matrix.controller import Matrix
from conformance.cli.matrix.kernel_spec import KernelSpec, specified
from conformance.cli.matrix.tasks import Built, Judged, judge
from conformance.session.options import apply_defaults, default_options
from host.deadline import Deadline
from kernels.errors import UserMistake
from kernels.store.built_kernel import BuiltKernel
from tests.bench import scaling
from tests.conftest import Uevt
from tests.enclosure import ROOT, Runs
from tests.test_shards import digests, results

pytest.importorskip("distributed")

EXPRESSION = "status. or dated.b"
CASES = 16
# A worker that is stopped is given up after this time, which is short for a test.
QUICK = """\
import sys
import conformance.cli.matrix.cluster
conformance.cli.matrix.cluster.SILENT_S = 5
from conformance.cli.main import main
sys.exit(main())
"""
SECONDS = 300.0


def start(place: Runs, *words: str) -> subprocess.Popen[str]:
    """Start a command of `uevt` in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", QUICK, *words],
        cwd=ROOT,
        env=place.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """The output of a command that ends with exit code 0."""
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    return output


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Wait for a line that has a pattern."""
    assert process.stdout is not None
    assert any(re.search(text, line) for line in process.stdout), f"it ended without {text}"


def kernel_spec(kernel: str, keyword: str, **others: Any) -> KernelSpec:
    """A kernel with options of `uevt run`."""
    options = default_options(kernel=kernel, keyword=keyword, **others)
    apply_defaults(options)
    return specified(options)


def workers(place: Runs) -> list[int]:
    return [pid for pid, command in place.processes().items() if "spawn_main" in command]


def matrix_words(out: Path, kernels: Sequence[str]) -> list[str]:
    return ["matrix", *kernels, f"--out={out}", f"-k={EXPRESSION}", "--shards=3", "--workers=3"]


def test_dead_and_stopped_workers_lose_nothing(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    """Two kernels, three workers; one is killed, one stopped."""
    place, out, chance = Runs(tmp_path, built_kernel.kernel_id), tmp_path / "out", random.Random(7)
    kernels = [built_kernel.kernel_id, "model"]
    process = start(place, *matrix_words(out, kernels))
    wait_for(process, "judging, 0/")
    for number in (signal.SIGKILL, signal.SIGSTOP):
        time.sleep(chance.uniform(0, 2))
        os.kill(chance.choice(workers(place)), number)
    output = ended(process)
    assert output.count("self-check ok: 16 cases") == output.count("PASS: 15 passed") == 1
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
    assert "self-check ok: 16 cases" in output
    assert len(digests(out / "model")) == CASES
    # Nothing is left to do.
    assert "self-check ok: 16 cases" in uevt("matrix", "--resume", out).out


def deadly(built: Built, spec: KernelSpec, part: str, *others: Any) -> Judged:
    """Judge a shard, and die if it has the culprit."""
    from conformance.session.shards import shard

    if "status.file_mode" in shard(part, built.ids).cases:
        os._exit(1)
    return judge(built, spec, part, *others)


def broken(*_: object) -> Judged:
    """Fails without ending its worker."""
    raise OSError("no room")


def judged(directory: Path, judging: Any) -> Matrix:
    """A matrix of the model with this task."""
    import cloudpickle

    # Workers cannot import this module by its name.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spec = kernel_spec("model", "status.file_mode or status.write")
    with connected(Namespace(scheduler=None), 2) as client:
        matrix = Matrix(client, directory, [spec], 1, judging=judging)
        matrix.run(lambda _: None)
    return matrix


@pytest.mark.filterwarnings("ignore")
def test_case_that_kills_workers_is_found(tmp_path: Path) -> None:
    matrix = judged(tmp_path, deadly)
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


def certificates(directory: Path) -> dict[str, str]:
    """The three files of TLS."""
    from distributed import Security

    made = Security.temporary()
    found = {}
    for name, text in (
        ("ca", made.tls_ca_file),
        ("cert", made.tls_client_cert),
        ("key", made.tls_client_key),
    ):
        (directory / name).write_text(text)
        found[name] = str(directory / name)
    return found


def listening(pid: int) -> set[str]:
    """The addresses at which a process accepts connections, in dotted or colon form."""
    sockets = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            sockets.add(str(file.readlink()).removeprefix("socket:[").rstrip("]"))
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                packed = bytes.fromhex(words[1].partition(":")[0])
                found.add(socket.inet_ntop(family, packed[::-1]))
    return found


def test_workers_of_a_scheduler(tmp_path: Path) -> None:
    """With TLS, as between machines."""
    place, out = Runs(tmp_path, "model"), tmp_path / "out"
    files = certificates(tmp_path)
    tls = [f"--tls-{name}={file}" for name, file in files.items()]
    address = tmp_path / "scheduler.json"
    dask = subprocess.Popen(
        [
            *(sys.executable, "-m", "dask", "scheduler", "--protocol=tls", "--host=127.0.0.1"),
            *("--port=0", "--no-dashboard", f"--scheduler-file={address}"),
            *(f"--tls-ca-file={files['ca']}", f"--tls-cert={files['cert']}"),
            f"--tls-key={files['key']}",
        ],
        env={**place.environment(), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = Deadline(60.0, "the scheduler")
        while not address.exists():
            deadline.pause(0.1)
        at = json.loads(address.read_text())["address"]
        assert at.startswith("tls://")
        worker = start(place, "worker", at, "--name=first", *tls)
        words = ["matrix", "model", f"--out={out}", f"-k={EXPRESSION}", "--shards=2"]
        assert "self-check ok" in ended(start(place, *words, f"--scheduler={at}", *tls))
        ours = [
            pid for pid, command in place.processes().items() if "dask scheduler" not in command
        ]
        assert {host for pid in ours for host in listening(pid)} == {"127.0.0.1"}
        shards = results(out / "model")["summary"]["shards"]
        assert [each["node"].rpartition(", ")[2] for each in shards] == ["worker first"] * 2
    finally:
        dask.terminate()
        dask.wait(SECONDS)
    assert ended(worker) == f"uevt: worker first of {at}\n"
    assert place.left() == []


def test_simulation_of_the_page_is_current() -> None:
    found = [scaling.simulated(number) for number in scaling.WORKERS]
    assert scaling.table(found) in (ROOT / "docs" / "scale.md").read_text()
    assert scaling.PICTURE.read_text() == scaling.picture(found)
    assert 0.8 < found[-1].efficiency < found[0].efficiency <= 1


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("127.0.0.1:8786", True),
        ("tcp://[::1]:8786", True),
        ("tcp://192.0.2.1:8786", False),
        ("tcp://0.0.0.0:8786", False),
    ],
)
def test_tls_is_required_off_the_machine(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
    none = Namespace(tls_ca=None, tls_cert=None, tls_key=None)
    if loopback:
        assert security_of(address, none) is None
        return
    with pytest.raises(UserMistake, match="a worker runs what it is sent"):
        security_of(address, none)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("worker", "tcp://192.0.2.1:8786"), "is another machine"),
        (("worker", "tls://192.0.2.1:8786"), "needs TLS"),
        (("worker", "tcp://127.0.0.1:1", "--tls-ca=a"), "TLS needs three files"),
        (("worker", "nonsense"), "is no address"),
        (("matrix", "--out=here"), "no kernel named"),
        (("matrix", "6.12"), "no --out"),
        (("matrix", "6.12", "--resume=here"), "--resume takes kernels"),
        (("matrix", "5.4", "--out=here"), "5.4"),
        (("matrix", "--resume=nowhere"), "has no matrix to resume"),
        (("matrix", "6.12", "--out=here", "--shards=0"), "--shards needs a number"),
    ],
)
def test_mistakes_are_refused(uevt: Uevt, words: tuple[str, ...], message: str) -> None:
    assert message in uevt(*words, code=2).err
