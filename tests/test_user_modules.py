"""Runs on Linux 6.12 with user modules: verdicts, and results of the modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from kernels.build.out_of_tree_modules import ensure_module
from kernels.catalog.catalog import load_catalog
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "fixtures" / "user_modules"
# Seconds to build a module and boot a guest on a busy machine.
PATIENCE = 600


def run(out: Path, *arguments: str, keyword: str = "status.") -> tuple[int, dict[str, Any], str]:
    """Run cases; exit code, results.json, and the output."""
    command = [sys.executable, "-m", "pytest", "conformance/cases", "-q", "--no-summary"]
    command += ["-p", "no:cacheprovider", f"--out={out}", f"-k{keyword}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (out / "results.json").exists(), done.stdout + done.stderr
    return done.returncode, json.loads((out / "results.json").read_text()), done.stdout


def module(name: str) -> str:
    return f"--module={MODULES / name}"


def outcomes(results: dict[str, Any]) -> dict[str, str]:
    return {case["id"]: case["outcome"] for case in results["cases"]}


def result(results: dict[str, Any], id: str) -> dict[str, Any]:
    (found,) = (case for case in results["cases"] if case["id"] == id)
    return dict(found)


def test_harmless_module_changes_nothing(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    code, results, shown = run(tmp_path / "out", "--kernel=6.12", module("harmless"))
    assert code == 0
    assert set(outcomes(results).values()) == {"PASS"}
    assert results["kernel"]["id"] == "6.12+harmless"
    assert "module uevt_harmless " in results["kernel"]["source"]
    assert results["kernel"]["release"] == built_kernel.release
    assert "uevt_harmless loaded, taints the kernel: OE" in shown
    assert "uevt_harmless unloaded" in shown
    assert sorted(path.name for path in (MODULES / "harmless").iterdir()) == [
        "Kbuild", "uevt_harmless.c",
    ]  # fmt: skip


def test_module_that_does_not_load_fails_the_run(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    code, results, shown = run(tmp_path / "out", "--kernel=6.12", module("init_fails"))
    load = result(results, "module.uevt_init_fails.load")
    assert code == 1
    assert results["summary"]["verdict"] == "FAIL"
    assert (load["outcome"], load["blame"]) == ("FAIL", "module")
    assert "ENODEV" in load["reason"]
    assert "no such device here" in load["evidence"]["console"]
    others = {outcome for id, outcome in outcomes(results).items() if id != load["id"]}
    assert others == {"SKIP"}
    assert "FAIL module.uevt_init_fails.load (" in shown


def test_warning_module_and_module_that_stays_are_blamed(
    tmp_path: Path, built_kernel: BuiltKernel
) -> None:
    given = (module("init_warns"), module("stays"))
    code, results, _ = run(tmp_path / "out", "--kernel=6.12", *given)
    warned = result(results, "module.uevt_init_warns.load")
    assert code == 1
    assert (warned["outcome"], warned["blame"]) == ("FAIL", "module")
    assert "the kernel complained as uevt_init_warns was loaded: WARNING: " in warned["reason"]
    assert outcomes(results)["module.uevt_stays.load"] == "PASS"
    stayed = result(results, "module.uevt_stays.unload")
    assert (stayed["outcome"], stayed["blame"]) == ("FAIL", "module")
    assert "EBUSY" in stayed["reason"]


def test_modules_are_loaded_in_order(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    given = (module("exporter"), module("importer"))
    code, results, _ = run(tmp_path / "out", "--kernel=6.12", *given)
    assert code == 0
    assert set(outcomes(results).values()) == {"PASS"}


def test_module_that_breaks_the_abi_fails_cases(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """The cases about EFAULT of write fail; those of writev pass."""
    given = ("--kernel=6.12", "--tier=full", "--fail-on=behaviour", module("wrong_errno"))
    code, results, _ = run(tmp_path / "out", *given, keyword="too_short_for_index")
    assert code == 1
    failed = {id for id, outcome in outcomes(results).items() if outcome == "CHANGED"}
    assert failed == {
        f"write.too_short_for_index.{length}" for length in ("none", "one", "two", "three")
    }
    assert {result(results, id)["blame"] for id in failed} == {"kernel"}
    passed = {id for id, outcome in outcomes(results).items() if outcome == "PASS"}
    assert {
        f"write.parts_too_short_for_index.{parts}"
        for parts in ("one", "one_and_two", "three_and_empty")
    } < passed


def test_prebuilt_module_is_loaded_into_an_image(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """A .ko of this kernel is loaded; a directory, and a .ko of another kernel, are refused."""
    ready = ensure_module(load_catalog().find("6.12"), MODULES / "harmless", Store())
    image = f"--image={built_kernel.image}"
    code, results, _ = run(tmp_path / "out", image, f"--module={ready}")
    assert code == 0
    assert results["kernel"]["id"] == f"image-{built_kernel.release}+uevt_harmless"
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
    command = [sys.executable, "-m", "pytest", "conformance/cases", "-q", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    return next(line for line in (done.stdout + done.stderr).splitlines() if "uevt: " in line)
