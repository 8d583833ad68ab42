"""Runs on Linux 6.12 with user modules: verdicts, and results of the modules."""

from __future__ import annotations

import sys
from pathlib import Path

from kernels.build.out_of_tree_modules import ensure_module
from kernels.catalog.catalog import load_catalog
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store
from tests.commands import cases, ended, outcomes, results
from tests.enclosure import ROOT

MODULES = ROOT / "fixtures" / "user_modules"


def run(out: Path, *arguments: str, code: int = 0, files: str = "status") -> str:
    """Run the cases of some files, and check the exit code; the output."""
    command = [sys.executable, "-m", "pytest", f"conformance/cases/{files}", "-q", "--no-summary"]
    return ended([*command, "-p", "no:cacheprovider", f"--out={out}", *arguments], code).stdout


def module(name: str) -> str:
    return f"--module={MODULES / name}"


def test_harmless_modules_change_nothing(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """They are loaded in order, and unloaded in the opposite one: the last needs one before."""
    modules = map(module, ("harmless", "exporter", "importer"))
    shown = run(tmp_path, "--kernel=6.12", *modules)
    assert set(outcomes(tmp_path).values()) == {"PASS"}
    kernel = results(tmp_path)["kernel"]
    assert kernel["id"] == "6.12+harmless+exporter+importer"
    assert "module uevt_harmless " in kernel["source"]
    assert kernel["release"] == built_kernel.release
    assert "uevt_harmless loaded, taints the kernel: OE" in shown
    assert "uevt_harmless unloaded" in shown
    assert sorted(path.name for path in (MODULES / "harmless").iterdir()) == [
        "Kbuild", "uevt_harmless.c",
    ]  # fmt: skip


def test_module_that_does_not_load_fails_the_run(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    shown = run(tmp_path, "--kernel=6.12", module("init_fails"), code=1)
    load = cases(tmp_path)["module.uevt_init_fails.load"]
    assert results(tmp_path)["summary"]["verdict"] == "FAIL"
    assert (load["outcome"], load["blame"]) == ("FAIL", "module")
    assert load["reason"] == (
        "the kernel does not load uevt_init_fails: ENODEV (No such device); "
        "uevt_init_fails: no such device here"
    )
    assert "no such device here" in load["evidence"]["console"]
    others = [case for id, case in cases(tmp_path).items() if id != load["id"]]
    assert {(case["outcome"], case["reason"]) for case in others} == {("SKIP", "module")}
    assert "FAIL module.uevt_init_fails.load (" in shown


def test_module_that_breaks_the_abi_fails_cases(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """The cases about EFAULT of write fail; those of writev pass."""
    given = ("--kernel=6.12", "--tier=full", "--fail-on=behaviour", module("wrong_errno"))
    run(tmp_path, *given, "-k=too_short_for_index", code=1, files="write")
    found = cases(tmp_path)
    failed = {id for id, case in found.items() if case["outcome"] == "CHANGED"}
    assert failed == {
        f"write.too_short_for_index.{length}" for length in ("none", "one", "two", "three")
    }
    assert {found[id]["blame"] for id in failed} == {"kernel"}
    passed = {id for id, case in found.items() if case["outcome"] == "PASS"}
    assert {
        f"write.parts_too_short_for_index.{parts}"
        for parts in ("one", "one_and_two", "three_and_empty")
    } < passed


def test_prebuilt_module_is_loaded_into_an_image(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """A .ko of this kernel is loaded; a directory, and a .ko of another kernel, are refused."""
    ready = ensure_module(load_catalog().find("6.12"), MODULES / "harmless", Store())
    image = f"--image={built_kernel.image}"
    run(tmp_path / "out", image, f"--module={ready}")
    assert (
        results(tmp_path / "out")["kernel"]["id"] == f"image-{built_kernel.release}+uevt_harmless"
    )
    other = tmp_path / "other.ko"
    words = f"vermagic={built_kernel.release} ".encode()
    other.write_bytes(
        ready.read_bytes().replace(words, b"vermagic=" + b"9" * (len(words) - 10) + b" ")
    )
    assert f"uevt: {other} was built for 9" in refused(image, f"--module={other}")
    assert "the tree of an image is not at hand" in refused(image, module("harmless"))
    assert "it is not an ELF file" in refused(image, f"--module={__file__}")


def test_model_takes_no_modules() -> None:
    assert "the model loads no modules" in refused("--kernel=model", module("harmless"))


def refused(*arguments: str) -> str:
    """The output of a run that a usage error prevents."""
    done = ended([sys.executable, "-m", "pytest", "conformance/cases/status", *arguments], 2)
    return next(line for line in (done.stdout + done.stderr).splitlines() if "uevt: " in line)
