"""`uevt pull-lab`: a job on 6.12, and what is refused before anything runs."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import time
from argparse import Namespace
from pathlib import Path

import pytest
from kcidb_io.schema import V5_3

from conformance.cli import pull_lab
from kernels.store.built_kernel import BuiltKernel
from tests.commands import results
from tests.conftest import Uevt
from tests.kernels.mirror_server import serving
from tests.kernels.test_lab_job import job

JUMP_TO_ITSELF = bytes.fromhex("eb fe")


def test_a_job_gives_a_verdict_and_a_document(
    uevt: Uevt, tmp_path: Path, built_kernel: BuiltKernel
) -> None:
    image = built_kernel.image
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    file = job(
        tmp_path,
        test={"parameters": "tier=quick k=status. frozen=0.1.0"},
        artifacts={"kernel": image.as_uri()},
        integrity={"sha256": {"kernel": digest}},
    )
    out = tmp_path / "out"
    uevt("pull-lab", file, "--out", out, "--origin", "mylab", "--build", "maestro:1")
    data = json.loads((out / "kcidb.json").read_text())
    V5_3.validate_exactly(data)
    assert {each["build_id"] for each in data["tests"]} == {"maestro:1"}
    assert {each["status"] for each in data["tests"]} == {"PASS"}
    summary = results(out)["summary"]
    assert summary["verdict"] == "PASS"
    assert summary["frozen"]["judged"] == len(data["tests"]) - 1
    # A second job must not send the results of the first.
    refused = uevt("pull-lab", file, "--out", out, "--origin", "mylab", code=2)
    assert refused.err == f"uevt: {out}: is not empty; name another --out\n"


def test_kernel_and_modules_of_a_server_are_judged(
    uevt: Uevt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz") as modules:
        release = tarfile.TarInfo("lib/modules/6.12.1")
        release.type = tarfile.DIRTYPE
        modules.addfile(release)
    judged: list[tuple[bytes, list[Path]]] = []

    def session(options: Namespace, *_: object) -> int:
        found = Path(options.modules) / "lib/modules"
        judged.append((Path(options.image).read_bytes(), [*found.iterdir()]))
        return 0

    monkeypatch.setattr(pull_lab, "session", session)
    with serving() as server:
        server.files = {"/bzImage": b"an image", "/modules.tar.xz": archive.getvalue()}
        names = {"kernel": "bzImage", "modules": "modules.tar.xz"}
        artifacts = {name: f"{server.base}/{file}" for name, file in names.items()}
        file = job(tmp_path, artifacts=artifacts, integrity={})
        uevt("pull-lab", file, "--out", tmp_path / "out", "--origin", "mylab")
    ((image, (release_of_modules,)),) = judged
    assert (image, release_of_modules.name) == (b"an image", "6.12.1")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--origin: is missing; name your CI system"),
        (["--origin", "a", "--build", "x"], "--build: 'x' is not an id"),
        (["--origin", "a"], "artifacts.kernel: "),
    ],
)
def test_a_wrong_command_runs_nothing(
    uevt: Uevt, tmp_path: Path, words: list[str], says: str
) -> None:
    file = job(tmp_path, artifacts={"kernel": "nowhere"})
    assert says in uevt("pull-lab", file, "--out", tmp_path / "out", *words, code=2).err
    assert not (tmp_path / "out").exists()


def test_a_used_directory_is_refused_before_anything_is_fetched(uevt: Uevt, tmp_path: Path) -> None:
    """No hint has --force, which is an option of `uevt run`."""
    file = job(tmp_path, artifacts={"kernel": "nowhere"})
    refused = uevt("pull-lab", file, "--out", tmp_path, "--origin", "mylab", code=2)
    assert refused.err == f"uevt: {tmp_path}: is not empty; name another --out\n"


def test_a_kernel_that_hangs_at_boot_ends_with_the_job(
    uevt: Uevt, tmp_path: Path, built_kernel: BuiltKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_lab, "_ENDING_S", 3.0)
    content = bytearray(built_kernel.image.read_bytes())
    # The boot protocol: after the boot sector and so many others comes the 32-bit entry point.
    entry = (content[0x1F1] + 1) * 512
    content[entry : entry + 2] = JUMP_TO_ITSELF
    (tmp_path / "bzImage").write_bytes(content)
    file = job(tmp_path, test={"timeout_s": 2}, artifacts={"kernel": "bzImage"}, integrity={})
    began = time.monotonic()
    ended = uevt("pull-lab", file, "--out", tmp_path / "out", "--origin", "mylab", code=3)
    assert "uevt: ended 3 s after the 2 s of the job" in ended.err
    # The first boot alone has a minute.
    assert time.monotonic() - began < 30
