"""Workers of a scheduler, the commands' mistakes, and the page of costs."""

from __future__ import annotations

import socket
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.cli.matrix import cluster
from conformance.cli.matrix.cluster import is_loopback, security_of
from conformance.cli.matrix.plan import Plan
from kernels.errors import UserMistake
from tests.bench import scaling
from tests.conftest import Uevt
from tests.enclosure import ROOT, Runs
from tests.matrix.matrices import (
    EXPRESSION,
    SECONDS,
    dask_scheduler,
    ended,
    start,
    wait_for,
)
from tests.test_shards import results

pytest.importorskip("distributed")


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, Path]:
    """The three files of TLS."""
    from distributed import Security

    made = Security.temporary()
    texts = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    files = {name: tmp_path / name for name in texts}
    for name, file in files.items():
        file.write_text(texts[name])
    return files


def options(files: dict[str, Path]) -> list[str]:
    """The files of TLS as options of our commands."""
    return [f"--tls-{name}={file}" for name, file in files.items()]


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


# Where no scheduler is, and files that hold no keys.
AT = "tls://127.0.0.1:1"
NO_PEM = {name: Path(__file__) for name in ("ca", "cert", "key")}


def test_workers_of_a_scheduler(tmp_path: Path, tls: dict[str, Path]) -> None:
    """With TLS, as between machines."""
    place, out = Runs(tmp_path, "model"), tmp_path / "out"
    given = [word.replace("--tls-ca=", "--tls-ca-file=") for word in options(tls)]
    with dask_scheduler(place, "--protocol=tls", *given) as (_, at):
        assert at.startswith("tls://")
        worker = start(place, "worker", at, "--name=first", *options(tls))
        words = ["matrix", "model", f"--out={out}", f"-k={EXPRESSION}", "--shards=2"]
        words += [f"--scheduler={at}", *options(tls)]
        assert "self-check ok" in ended(start(place, *words))
        ours = [
            pid for pid, command in place.processes().items() if "dask scheduler" not in command
        ]
        assert {host for pid in ours for host in listening(pid)} == {"127.0.0.1"}
        shards = results(out / "model")["summary"]["shards"]
        assert [each["node"].rpartition(", ")[2] for each in shards] == ["worker first"] * 2
    assert ended(worker) == f"uevt: worker first of {at}\n"
    assert place.left() == []


def test_killed_scheduler_is_named_in_one_line(tmp_path: Path) -> None:
    """Without a traceback of dask."""
    place, out = Runs(tmp_path, "model"), tmp_path / "out"
    with dask_scheduler(place) as (scheduler, at):
        worker = start(place, "worker", at)
        words = ["matrix", "model", f"--out={out}", f"-k={EXPRESSION}", "--shards=8"]
        matrix = start(place, *words, f"--scheduler={at}")
        wait_for(matrix, "judging, 0/")
        scheduler.kill()
        output, _ = matrix.communicate(timeout=SECONDS)
    *before, last = output.splitlines()
    assert all(line.startswith("model ") for line in before), output
    assert last == f"uevt: the scheduler has ended; to go on: uevt matrix --resume {out}"
    assert matrix.returncode == 3
    ended(worker)
    assert place.left() == []


def test_simulation_of_the_page_is_current() -> None:
    found = [scaling.simulated(number) for number in scaling.WORKERS]
    page = " ".join((ROOT / "docs" / "scale.md").read_text().split())
    assert " ".join(scaling.table(found).split()) in page
    assert f"{scaling.CASES_S:.0f} s for the cases of a kernel" in page
    assert f"{scaling.BUILDS:.0%} of the work" in page
    # scaling.CASES_S is from there.
    assert f"{scaling.CASES_S:.0f} s to spend" in (ROOT / "docs" / "performance.md").read_text()
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
        (("worker", "http://127.0.0.1:80"), "is no address of a scheduler; write tls://HOST:PORT"),
        (("worker", "tls://127.0.0.1", "--tls-ca=a", "--tls-cert=b", "--tls-key=c"), "no address"),
        (("worker", AT, *options({**NO_PEM, "cert": Path("no")})), "--tls-cert no: No such file"),
        (("worker", AT, *options(NO_PEM)), "the files of TLS cannot be used"),
        (("matrix", "--out=here"), "no kernel named"),
        (("matrix", "6.12"), "no --out"),
        (("matrix", "6.12", "--resume=here"), "--resume takes kernels"),
        (("matrix", "--abi=6.8", "--resume=here"), "--resume takes kernels"),
        (("matrix", "6.12", "--tree=here", "--out=here"), "exclude each other"),
        (("matrix", "model", "--patch=here", "--out=here"), "for kernels that are built"),
        (("matrix", "6.12", "--patch=nowhere", "--out=here"), "nowhere: No such file"),
        (("matrix", "6.12", "--abi=none", "--out=here"), "--abi none"),
        (("matrix", "6.12", "--ref=HEAD", "--out=here"), "--ref goes with --tree"),
        (("matrix", "5.4", "--out=here"), "5.4"),
        (("matrix", "--resume=nowhere"), "has no matrix to resume"),
        (("matrix", "6.12", "--out=here", "--shards=0"), "--shards needs a number"),
        (("matrix", "6.12", "--out=here", "-k=nosuchcase"), "no case matches -k 'nosuchcase'"),
        (("matrix", "6.12", "--out=here", "-k=a b"), "is no expression"),
        (("matrix", "6.12", "--out=here", "--scheduler=ws://127.0.0.1:80"), "is no address"),
    ],
)
def test_mistakes_are_refused(
    uevt: Uevt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in uevt(*words, code=2).err
    # The corrected command may have the same --out.
    assert list(tmp_path.iterdir()) == []


def test_matrix_without_a_scheduler_leaves_nothing(
    uevt: Uevt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: dict[str, Path]
) -> None:
    """The hint has TLS where that is asked for."""
    monkeypatch.setattr(cluster, "_CONNECT_S", 1)
    out = tmp_path / "out"
    words = ("matrix", "model", f"--out={out}", "--scheduler")
    plain = uevt(*words, "tcp://127.0.0.1:1", code=3).err
    assert "start it: dask scheduler --host 127.0.0.1" in plain
    encrypted = uevt(*words, AT, *options(tls), code=3).err
    assert "start it: dask scheduler --protocol tls --tls-ca-file FILE" in encrypted
    assert not out.exists()


def test_out_of_a_matrix_is_resumed_by_name(uevt: Uevt, tmp_path: Path) -> None:
    """No hint has --force, which is an option of `uevt run`."""
    with Plan(tmp_path, {}, [], None).written():
        pass
    words = ("matrix", "model", f"--out={tmp_path}")
    assert f"continue it: uevt matrix --resume {tmp_path}" in uevt(*words, code=2).err
    (tmp_path / "matrix.json").rename(tmp_path / "other")
    assert uevt(*words, code=2).err.endswith("is not empty; name another --out\n")


def test_second_matrix_in_a_directory_is_refused(uevt: Uevt, tmp_path: Path) -> None:
    kernels = {"model": {"words": ["--kernel=model", "--fail-on=detail"], "digest": ""}}
    plan, words = Plan(tmp_path, kernels, [], None), ("matrix", "--workers=1", "--resume")
    with plan.written():
        before = (tmp_path / "matrix.json").read_bytes()
        said = uevt(*words, tmp_path, code=2).err
        assert "is in use by another matrix; wait for it to end" in said
        assert (tmp_path / "matrix.json").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["matrix.json"]


def test_unusable_directory_is_a_mistake_of_the_user(uevt: Uevt, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        out = tmp_path / name
        said = uevt("matrix", "model", "--workers=1", "--out", out, code=2).err
        assert said.startswith(f"uevt: {out}: cannot be written: ")
        assert said.endswith("; name another --out\n")
