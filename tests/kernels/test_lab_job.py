"""Job definitions of KernelCI's pull labs, and their artifacts."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from host.deadline import Deadline
from host.progress import silent
from kernels.errors import BrokenFile, SourceUnavailable, TookTooLong
from kernels.lab_job import Artifact, LabJob, unpack_modules
from tests.kernels.mirror_server import serving

# What kernelci-core's template pull_labs.jinja2 renders for a test of this type.
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ci" / "kernelci" / "job.json"
IMAGE = b"an image"


@pytest.fixture
def left() -> Deadline:
    return Deadline(60, "the job")


def job(directory: Path, *, test: Mapping[str, Any] | None = None, **others: Any) -> Path:
    """A definition with other values of some keys."""
    found = json.loads(EXAMPLE.read_text())
    found["tests"][0] |= test or {}
    file = directory / "job.json"
    file.write_text(json.dumps({**found, **others}))
    return file


def test_the_example_is_read() -> None:
    found = LabJob.read(EXAMPLE)
    base = "https://files.example.org/kbuild-gcc-14-x86-1"
    assert found.kernel == Artifact("kernel", f"{base}/bzImage")
    assert found.modules == Artifact("modules", f"{base}/modules.tar.xz")
    assert (found.test, found.timeout_s) == ("user-events", 1800)
    assert (found.parameters, found.others) == ({"tier": "quick"}, ())


def test_other_tests_are_named_and_defaults_apply(tmp_path: Path) -> None:
    tests = [{"id": "boot-1", "type": "boot"}, {"type": "user_events"}]
    found = LabJob.read(job(tmp_path, tests=tests, artifacts={"kernel": "x"}, environment={}))
    assert (found.test, found.timeout_s, found.others) == ("user_events", 3600, ("boot-1",))
    assert (found.modules, found.parameters) == (None, {})


def test_a_value_may_have_spaces(tmp_path: Path) -> None:
    file = job(tmp_path, test={"parameters": "tier=full k='write or status' frozen=0.1.0"})
    parameters = {"tier": "full", "k": "write or status", "frozen": "0.1.0"}
    assert LabJob.read(file).parameters == parameters


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ({"environment": {"arch": "arm64"}}, "environment.arch: is 'arm64'; this suite judges"),
        ({"environment": 1}, "environment: is 1"),
        ({"tests": []}, "tests: has 0 of type user_events (types: none)"),
        ({"tests": [{"type": "boot"}, {"type": "ltp"}]}, "(types: boot, ltp)"),
        ({"tests": ["x"]}, "tests: is not a list of objects"),
        ({"artifacts": {}}, "artifacts.kernel: is missing"),
        ({"artifacts": {"kernel": 7}}, "kernel: is 7"),
        ({"integrity": {"sha256": {"kernel": "00"}}}, "integrity.sha256.kernel: is '00'"),
        ({"test": {"subset": ["a"]}}, "tests.subset: is not supported"),
        ({"test": {"pre-commands": ["reboot"]}}, "tests.pre-commands: is not supported"),
        ({"test": {"timeout_s": 0}}, "tests.timeout_s: is 0"),
        # No timer takes it.
        ({"test": {"timeout_s": 10**10}}, "tests.timeout_s: is 10000000000"),
        ({"test": {"timeout_s": True}}, "timeout_s: is True"),
        ({"test": {"parameters": "tier"}}, "'tier' is no parameter; write NAME=VALUE"),
        ({"test": {"parameters": "out=/etc"}}, "'out=/etc' is no parameter"),
        ({"test": {"parameters": "k='"}}, "tests.parameters: No closing quotation"),
    ],
)
def test_a_job_that_cannot_run_is_refused(
    tmp_path: Path, others: dict[str, Any], says: str
) -> None:
    file = job(tmp_path, **others)
    with pytest.raises(BrokenFile) as error:
        LabJob.read(file)
    assert says in error.value.with_hint
    assert str(error.value).startswith(f"{file}: ")


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 100_000])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "job.json"
    file.write_bytes(content)
    with pytest.raises(BrokenFile, match="is not"):
        LabJob.read(file)
    with pytest.raises(BrokenFile, match="No such file"):
        LabJob.read(tmp_path / "nowhere")


def fetched(file: Path, address: str, left: Deadline, sha256: str = "") -> Path:
    artifact = Artifact("kernel", address, sha256)
    return LabJob.read(file).fetch(artifact, file.parent, left, silent)


def test_local_artifacts_stay_where_they_are(tmp_path: Path, left: Deadline) -> None:
    file, image = job(tmp_path), tmp_path / "an image"
    image.write_bytes(IMAGE)
    for address in ("an image", str(image), image.as_uri()):
        assert fetched(file, address, left) == image


@pytest.mark.parametrize(("name", "path"), [("bzImage", "bzImage"), ("..", "kernel")])
def test_a_download_stays_in_its_directory(
    tmp_path: Path, left: Deadline, name: str, path: str
) -> None:
    digest = hashlib.sha256(IMAGE).hexdigest()
    with serving() as mirror:
        mirror.files[f"/a/{name}"] = IMAGE
        found = fetched(job(tmp_path), f"{mirror.base}/a/{name}", left, digest)
    assert found == tmp_path / "kernel" / path
    assert found.read_bytes() == IMAGE


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/dev/zero", "is no file"),
        ("file:///dev", "is no file"),
        ("a\0b", "null byte"),
        ("nowhere", "nowhere: No such file"),
        ("ftp://x/y", ""),
        ("data:,x", ""),
        ("http://[x/y", ""),
    ],
)
def test_only_files_are_read(tmp_path: Path, left: Deadline, address: str, says: str) -> None:
    with pytest.raises(BrokenFile, match=rf"artifacts\.kernel: .*{says}"):
        fetched(job(tmp_path), address, left)


def test_a_download_that_is_not_there_is_named(tmp_path: Path, left: Deadline) -> None:
    with serving() as mirror:
        address = f"{mirror.base}/bzImage"
        with pytest.raises(BrokenFile, match=r"artifacts\.kernel: http://.*404"):
            fetched(job(tmp_path), address, left)
    (tmp_path / "kernel").rmdir()
    with pytest.raises(SourceUnavailable, match="Connection refused"):
        fetched(job(tmp_path), address, left)


def test_a_wrong_digest_is_refused(tmp_path: Path, left: Deadline) -> None:
    (tmp_path / "bzImage").write_bytes(IMAGE)
    with pytest.raises(BrokenFile, match=f"has sha256 .*, not {'0' * 64}"):
        fetched(job(tmp_path), "bzImage", left, "0" * 64)


def archive(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:xz") as found:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            found.addfile(member, io.BytesIO(b"x"))
    return path


def test_modules_are_unpacked(tmp_path: Path, left: Deadline) -> None:
    packed = archive(tmp_path / "modules.tar.xz", "lib/modules/6.12.1/kernel/x.ko")
    found = unpack_modules(packed, tmp_path / "modules", left)
    assert (found / "lib/modules/6.12.1/kernel/x.ko").is_file()


def test_another_archive_is_refused(tmp_path: Path, left: Deadline) -> None:
    (tmp_path / "text").write_text("no archive")
    outside = archive(tmp_path / "outside.tar.xz", "../evil", "lib/modules/6.12.1/x")
    other = archive(tmp_path / "other.tar.xz", "boot/vmlinuz")
    for number, (file, says) in enumerate(
        [(tmp_path / "text", "cannot be unpacked"), (outside, "cannot be"), (other, "has no lib")]
    ):
        with pytest.raises(BrokenFile, match=says):
            unpack_modules(file, tmp_path / str(number), left)
    assert not (tmp_path / "evil").exists()


def test_unpacking_ends_with_the_time_of_the_job(tmp_path: Path) -> None:
    packed = archive(tmp_path / "modules.tar.xz", "lib/modules/6.12.1/x.ko")
    with pytest.raises(TookTooLong, match="results of x did not end within"):
        unpack_modules(packed, tmp_path / "modules", Deadline(1e-9, "results of x"))
