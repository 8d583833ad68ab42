"""The build store: unfinished entries are never found, and every wait has an end."""

from __future__ import annotations

import errno
import json
import os
import shutil
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from host.progress import Step, silent
from kernels.catalog.catalog import load_catalog
from kernels.catalog.patch import Patch
from kernels.errors import HostTrouble, StoreBusy, StoreFull, StoreUnusable
from kernels.store.built_kernel import Recipe
from kernels.store.store import Store, default_root
from kernels.tools import toolchain
from tests.kernels.conftest import run_measured
from tests.kernels.fake_make import ENTRY, RECIPE, publish


def lock(store: Store) -> None:
    with store.locked("a test", silent):
        pass


def test_finished_kernel_is_found(store: Store, tmp_path: Path) -> None:
    assert store.lookup(ENTRY) is None
    publish(store, tmp_path)
    kernel = store.lookup(ENTRY)
    assert kernel is not None
    assert (kernel.kernel_id, kernel.abi) == ("9.9", "9.9.3")
    assert (kernel.release, kernel.revision) == ("9.9.3-test", "9.9.3-1")
    assert kernel.image.read_bytes() == b"an image"
    assert kernel.config.read_text() == "CONFIG_A=y\n"
    assert kernel.config_sha256 == (
        "e7e1b2c0a9031fbc9e999438d6d65847f80ddd76244dfc5a1efac71731d40f85"
    )
    assert kernel.wanted == ENTRY.wanted
    assert kernel.source == "linux-source-9.9 9.9.3-1"
    assert store.configuration(kernel.config_sha256) == "CONFIG_A=y\n"
    assert store.configuration("0" * 64) is None
    assert list((store.root / "work").iterdir()) == []
    record = json.loads((kernel.image.parent / "kernel.json").read_text())
    assert (record["schema"], record["compiler"]) == (1, "gcc 1; ld 1")


@pytest.mark.parametrize("field", ["package", "revision", "wanted", "patches", "compiler", "make"])
def test_every_field_of_a_recipe_changes_the_key(field: str) -> None:
    other: object = ("CONFIG_Z=y",) if field in ("wanted", "make") else "other"
    changed: Recipe = replace(RECIPE, **{field: other})
    assert changed.key != RECIPE.key


def test_a_changed_entry_is_not_found(store: Store, tmp_path: Path) -> None:
    publish(store, tmp_path)
    assert store.lookup(replace(ENTRY, wanted=(*ENTRY.wanted, "CONFIG_C=y"))) is None
    assert store.lookup(replace(ENTRY, patches=(Patch("fix", "text"),))) is None
    assert store.lookup(replace(ENTRY, revision="9.9.2-1")) is None
    assert store.lookup(ENTRY) is not None


def test_compiler_is_compared_by_version(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store, tmp_path, stamp="old file")
    monkeypatch.setattr(toolchain, "stamp", lambda: "new file")
    monkeypatch.setattr(toolchain, "_version", {"gcc": "gcc 1", "ld": "ld 1"}.get)
    assert store.lookup(ENTRY) is not None
    monkeypatch.setattr(toolchain, "_version", {"gcc": "gcc 2", "ld": "ld 1"}.get)
    assert store.lookup(ENTRY) is None


@pytest.mark.usefixtures("bare_host")
def test_host_without_compiler_uses_stored_kernels(store: Store, tmp_path: Path) -> None:
    publish(store, tmp_path)
    assert store.lookup(ENTRY) is not None


# Of another kernel than its directory.
FOREIGN = {"release": "9.9.3", "config_sha256": "", **asdict(replace(RECIPE, revision="9.9.4-1"))}


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (f"kernels/{RECIPE.key}/bzImage", None),
        (f"kernels/{RECIPE.key}/kernel.json", None),
        (f"kernels/{RECIPE.key}/kernel.json", '{"schema": 1, "rel'),
        (f"kernels/{RECIPE.key}/kernel.json", '{"schema": 1}'),
        (f"kernels/{RECIPE.key}/kernel.json", json.dumps(FOREIGN)),
        ("names/9.9.json", ""),
    ],
    ids=["no image", "no record", "torn record", "empty record", "foreign record", "torn name"],
)
def test_damaged_entry_is_published_again(
    store: Store, tmp_path: Path, file: str, content: str | None
) -> None:
    publish(store, tmp_path)
    (store.root / file).unlink()
    if content is not None:
        (store.root / file).write_text(content)
    assert store.lookup(ENTRY) is None
    publish(store, tmp_path)
    assert store.lookup(ENTRY) is not None


def test_variant_uses_the_revision_of_its_base_by_default(store: Store, tmp_path: Path) -> None:
    variant = replace(ENTRY, name="9.9-changed", of=ENTRY.name)
    with store.locked("a test", silent):
        store.remember(ENTRY, RECIPE, "")
    assert store.remembered_revision(variant) == RECIPE.revision
    assert store.remembered_revision(replace(variant, revision="9.9.1")) is None
    with store.locked("a test", silent):
        store.remember(replace(ENTRY, revision="9.9.1"), replace(RECIPE, revision="9.9.1-4"), "")
    assert store.remembered_revision(replace(variant, revision="9.9.1")) == "9.9.1-4"


def test_full_disk_is_noticed_before_the_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.root.mkdir()
    usage = shutil.disk_usage(store.root)._replace(free=300 * 1024 * 1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    store.require_space(300, "building 9.9")
    with pytest.raises(StoreFull) as caught:
        store.require_space(301, "building 9.9")
    assert str(caught.value) == (
        f"no space for building 9.9 in {store.root}: it needs about 301 MiB, 300 MiB are free"
    )
    assert "UEVT_CACHE" in caught.value.hint
    assert isinstance(caught.value, HostTrouble)


def test_disk_that_fills_up_during_the_work_is_store_full(store: Store) -> None:
    def fill_the_disk() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StoreFull, match=r"building 9\.9"), store.locked("building 9.9", silent):
        fill_the_disk()


def hold_lock(root: Path, pipe: Connection) -> None:
    """Main function of a child process."""
    with Store(root).locked("building 9.9", silent):
        pipe.send("held")
        pipe.recv()


def test_waiting_for_the_lock_names_its_holder_and_ends(store: Store) -> None:
    ours, theirs = Pipe()
    holder = get_context("spawn").Process(target=hold_lock, args=(store.root, theirs), daemon=True)
    holder.start()
    assert ours.poll(30)
    steps: list[Step] = []
    with pytest.raises(StoreBusy) as caught, store.locked("a test", steps.append, wait_s=1.2):
        pytest.fail("two hold the lock")
    assert f"process {holder.pid} (building 9.9, since " in str(caught.value)
    assert steps
    assert f"waiting for process {holder.pid}" in steps[0].phase
    ours.send("end")
    with store.locked("a test", silent, wait_s=5):
        holder.join(30)
    assert holder.exitcode == 0


def test_leftovers_of_killed_builders_are_swept(store: Store) -> None:
    with store.workspace() as in_use:
        left = in_use.with_name("uevt-scratch-left")
        left.mkdir()
        (store.root / "names").mkdir()
        unfinished = store.root / "names" / ".uevt-9.9.json.1"
        unfinished.touch()
        Store(store.root).tidy()
        assert in_use.exists()
        assert not left.exists()
        with store.lock("9.9", "a test", silent):
            assert not unfinished.exists()


def test_items_are_locked_one_by_one(store: Store) -> None:
    lock(store)
    other = Store(store.root)
    with store.lock("9.9", "building 9.9", silent), store.lock("9.8", "building 9.8", silent):
        busy = pytest.raises(StoreBusy, match=r"building 9\.9")
        with busy, other.lock("9.9", "a test", silent, wait_s=0.0):
            pass
        # As for garbage collection.  No holder is named that has ended.
        busy = pytest.raises(StoreBusy, match=f"held by process {os.getpid()}$")
        with busy, other.locked("a test", silent, wait_s=0.0):
            pass


def test_workspace_of_a_process_without_a_lock_stays(store: Store) -> None:
    with store.workspace() as in_use:
        lock(Store(store.root))
        assert in_use.exists()


def test_uevt_cache_is_the_place_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / "elsewhere"))
    assert default_root() == tmp_path / "elsewhere"
    monkeypatch.delenv("UEVT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "uevt"


def test_warm_look_up_is_fast(store: Store, tmp_path: Path) -> None:
    publish(store, tmp_path, load_catalog().find("6.12"))
    script = (
        "from kernels.catalog.catalog import load_catalog\n"
        "from kernels.store.store import Store\n"
        "import kernels.build.build\n"
        "print(Store().lookup(load_catalog().find('6.12')).image)\n"
    )
    output, spent = run_measured(script, store)
    assert output.strip().endswith("bzImage")
    assert spent < 0.3


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory in which other users can make this user run their programs."""
    tmp_path.chmod(0o1777)
    return tmp_path


def test_unusable_place_is_refused(shared: Path) -> None:
    (shared / "file").touch()
    for name, why in (
        ("file", "file exists"),
        ("my cache", "space or a colon"),
        (".", "it is not your directory"),
    ):
        with pytest.raises(StoreUnusable, match=f"(?i){shared / name}.*{why}") as caught:
            lock(Store(shared / name))
        assert "UEVT_CACHE" in caught.value.hint
    assert [each.name for each in shared.iterdir()] == ["file"]
    # A new directory in it is safe.
    lock(Store(shared / "ours"))


def test_store_of_another_user_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shared / "taken").mkdir()
    if os.geteuid() == 0:
        os.chown(shared / "taken", 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StoreUnusable, match="it is not your directory"):
        lock(Store(shared / "taken"))
    assert list((shared / "taken").iterdir()) == []
