"""Kernels with patches, and trees: what reaches a worker, and what a resumed matrix refuses."""

from __future__ import annotations

import os
import socket
import time
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.cli.main import build_parser, main
from conformance.cli.matrix import resources
from conformance.cli.matrix.controller import Matrix
from conformance.cli.matrix.kernel_spec import KernelSpec, specified
from conformance.cli.matrix.plan import planned, recalled
from conformance.cli.matrix.progress import Column
from conformance.cli.matrix.tasks import Built, Judged, _report, judge
from conformance.session.options import apply_defaults, default_options
from conformance.session.target.target import request_of
from host.temporary_directories import scratch
from kernels.errors import UserMistake
from kernels.store.built_kernel import BuiltKernel, Product
from kernels.store.store import Store
from kernels.store.transfer import CHUNK
from kernels.tools import toolchain
from tests.enclosure import Enclosure, Runs
from tests.kernels.user_trees import write_sources
from tests.matrix.matrices import dask_worker, kernel_spec, offering
from tests.test_shards import results
from tests.torture.matrix import Proxy

pytest.importorskip("distributed")

PATCH = """\
--- a/kernel/fork.c
+++ b/kernel/fork.c
@@ -1 +1 @@
-fork
+knife
"""
OFFER: dict[str, float] = {"vm": 1, "cores": 1, "mib": 4000, "tcg": 1}


def patch(directory: Path, text: str = PATCH) -> str:
    file = directory / "fix.patch"
    file.write_text(text)
    return str(file)


def stands_for(kernel: BuiltKernel, options: Namespace, store: Store) -> KernelSpec:
    """Let a kernel stand for what is requested, as if it was built."""
    apply_defaults(options)
    entry = request_of(options).entry(store)
    assert entry.revision is not None
    recipe = replace(
        store.recipe(kernel),
        package=entry.source.package,
        revision=entry.revision,
        patches=entry.patches_digest,
    )
    product = Product(kernel.release, kernel.image, kernel.config, kernel.interface)
    store.publish(recipe, product)
    store.remember(entry, recipe, toolchain.stamp())
    return specified(options)


@pytest.mark.filterwarnings("ignore")
def test_kernel_reaches_another_store_through_a_cut_connection(
    built_kernel: BuiltKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patched tree, of which the second worker has neither the files nor the kernel.

    The connection is cut in the middle: what arrived before is not sent again.
    """
    here = Runs(tmp_path / "here", built_kernel.kernel_id)
    there = Enclosure(tmp_path / "there")
    monkeypatch.setenv("UEVT_CACHE", str(here.cache))
    tree = tmp_path / "linux"
    write_sources(tree)
    given = {"tree": str(tree), "patch": [patch(tmp_path)], "keyword": "write.", "tier": "quick"}
    spec = stands_for(built_kernel, default_options(kernel=None, **given), Store())
    size = built_kernel.image.stat().st_size

    def take_away(_: int) -> None:
        """The machine of the second worker has no such tree."""
        if matrix.columns[0].state == "judging" and tree.exists():
            tree.rename(tmp_path / "elsewhere")

    with ExitStack() as stack:
        client = stack.enter_context(offering())
        scheduler = client.scheduler_info()["address"]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        proxy = Proxy(port, cut_after=size // 2)
        stack.callback(proxy.close)
        ends = [f"--{end}-address=tcp://127.0.0.1:" for end in ("listen", "contact")]
        first = [f"{ends[0]}{port}", f"{ends[1]}{proxy.port}"]
        builder = {**OFFER, resources.machine(): 1}
        workers = [
            dask_worker(here, scheduler, "first", builder, *first),
            dask_worker(there, scheduler, "second", OFFER),
        ]
        for worker in workers:
            stack.callback(worker.wait, 60)
            stack.callback(worker.terminate)
        client.wait_for_workers(2, timeout=60)
        matrix = Matrix(client, tmp_path / "out", [spec], 2)
        matrix.run(take_away)
    assert matrix.errors == {}
    assert spec.id == "tree-6.13-rc2+fix"
    found = results(tmp_path / "out" / spec.id)
    assert found["asked"] == list(spec.words)
    assert {case["outcome"] for case in found["cases"]} == {"PASS", "XFAIL"}
    nodes = {each["node"].rpartition(" ")[2] for each in found["summary"]["shards"]}
    assert nodes == {"first", "second"}
    assert size < proxy.forwarded < size + 1.5 * CHUNK
    assert list((there.cache / "downloads").iterdir()) == []
    assert here.left() + there.left() == []


def test_tree_is_not_built_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.cli.matrix.kernel_state._ALONE_S", 2.0)
    spec = kernel_spec("6.12", "")
    assert spec.entry is not None
    source = replace(spec.entry.source, tree=tmp_path)
    spec = replace(spec, entry=replace(spec.entry, source=source))
    with offering(OFFER) as client:
        matrix = Matrix(client, tmp_path / "out", [spec], 1)
        matrix.run(lambda _: None)
    assert matrix.errors[spec.id].startswith("no worker offers vm=1, machine-")


def test_changed_patch_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, file = tmp_path / "out", patch(tmp_path)
    words = ["matrix", "6.12", f"--patch={file}", "--abi=6.12", f"--out={out}"]
    with planned(build_parser(words).parse_args(words)).written():
        pass
    words = ["matrix", f"--resume={out}"]
    plan = recalled(build_parser(words).parse_args(words))
    (spec,) = plan.left
    assert (list(plan.kernels), spec.id, plan.shards) == (["6.12+fix"], "6.12+fix", None)
    # As uevt run: a patched kernel is judged by all cases.
    assert {"--tier=full", "--abi=6.12", "--fail-on=contract"} <= set(spec.words)
    patch(tmp_path, PATCH.replace("knife", "spoon"))
    assert main(words) == 2
    assert "has 6.12+fix with another patch" in capsys.readouterr().err


def test_edited_tree_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "linux"
    write_sources(tree)
    options = default_options(kernel=None, keyword=None, tree=str(tree))
    apply_defaults(options)
    spec = specified(options)
    with spec.options() as words:
        assert f"--tree={tree}" in words
    (tree / "kernel" / "fork.c").write_text("knife\n")
    with pytest.raises(UserMistake, match="another kernel than when the matrix began"):
        spec.options().__enter__()


def test_files_travel_with_their_names(tmp_path: Path) -> None:
    semantic = tmp_path / "rename.cocci"
    semantic.write_text("@@ @@\n-a\n+b\n")
    given = [patch(tmp_path), f"{semantic}:kernel/trace"]
    spec = kernel_spec("6.12", "", patch=given)
    for name in (*spec.files,):
        Path(name).unlink()
    with spec.options() as words:
        moved = [word for word in words if word.startswith("--patch=")]
        assert [word.rpartition("/")[2] for word in moved] == ["fix.patch", "trace"]
        assert str(tmp_path) not in "".join(words)
        assert spec.id == "6.12+fix+rename"


def test_a_pipe_is_refused() -> None:
    """It can be read only once."""
    ours, theirs = os.pipe()
    os.write(theirs, PATCH.encode())
    os.close(theirs)
    try:
        with pytest.raises(UserMistake, match="not a regular file") as refused:
            kernel_spec("6.12", "", patch=[f"/dev/fd/{ours}"])
    finally:
        os.close(ours)
    assert "stays" in refused.value.with_hint


def slow(built: Built, spec: KernelSpec, part: str, *others: Any) -> Judged:
    """Reports one case before it judges."""
    with scratch() as directory:
        file = directory / "journal.jsonl"
        file.write_text('{"event": "plan"}\n{"event": "case", "case": {}}\n')
        _report(file, spec.id, part)
    time.sleep(2)
    return judge(built, spec, part, *others)


@pytest.mark.filterwarnings("ignore")
def test_cases_of_running_shards_are_counted(tmp_path: Path) -> None:
    seen: set[str] = set()

    def look(_: int) -> None:
        seen.add(matrix.columns[0].line(moving=True).rpartition(" ")[0].rpartition(" ")[2])

    spec = kernel_spec("model", "status.write or status.file_mode")
    with offering({"vm": 1, "cores": 1, "mib": 4000}) as client:
        matrix = Matrix(client, tmp_path, [spec], 1, judging=slow)
        matrix.run(look)
    assert {"0/2", "1/2", "2/2"} <= seen


def test_only_a_screen_that_moves_shows_running_cases() -> None:
    column = Column("6.12", "judging", cases=9, done=2, running={"1/2": 3})
    assert "5/9" in column.line(moving=True)
    assert "2/9" in column.line(moving=False)
