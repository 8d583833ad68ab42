"""Suggested patches: each belongs to one section of docs/findings.md, and applies to 6.12."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.abi.bugs import BUGS
from conformance.abi.switches import BY_NAME
from conformance.report.matrix.findings import FINDINGS, Finding, read_findings
from conformance.results.outcome import Outcome
from host.progress import StreamProgress
from kernels.catalog.catalog import load_catalog
from kernels.patches import applying, series
from kernels.sources.unpacked import SourceTrees
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store
from tests.bench.fixes import wrong_about
from tests.report.samples import case, run

ROOT = Path(__file__).resolve().parent.parent
PATCHES = sorted((ROOT / "fixtures" / "fixes").glob("*.patch"))
SECTIONS = read_findings(FINDINGS)

_BUG = re.compile(r"\bBug\s`([a-z0-9-]+)`")
_RELEASE = r"\d[\d.]*\d"
_SWITCH = re.compile(r"\bSwitch\s`([a-z0-9_]+)`")
_KERNELS = re.compile(r"\bKernels?\s(\d[^;]*?)(?:,\sfixed\sin\s([^;]+))?(?:;|\.\n)")
_PARTS = re.compile(
    r"\n\nReproducer[^:]*:\n\n```(?:sh|c)\n.+?\n```\n(?:.*\n)?"
    r"\nCause:\s.+?\n\nFixes:\s.+?\n\nSuggested\spatch:\s(.+)",
    re.DOTALL,
)
_PATCH = re.compile(r"`fixtures/fixes/([a-z0-9-]+)\.patch`")

each_section = pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
each_patch = pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)


def bug_of(section: Finding) -> str:
    """The id of the bug, "" for a section without one."""
    bugs = _BUG.findall(section.text)
    assert len(bugs) <= 1
    return "".join(bugs)


def suggestion_of(section: Finding) -> str:
    found = _PARTS.search(section.text)
    assert found, "write Reproducer, Cause, Fixes and Suggested patch, in this order"
    return found[1]


@each_section
def test_section_is_a_mail(section: Finding) -> None:
    """It has a reproducer, a cause, and a patch or the reason why there is none."""
    suggestion, bug = suggestion_of(section), bug_of(section)
    own = [name for name in _PATCH.findall(suggestion) if name == bug]
    assert own or re.match(r"none\b.{20}", suggestion, re.DOTALL), suggestion


def test_every_bug_has_one_section() -> None:
    described = [bug for section in SECTIONS if (bug := bug_of(section))]
    assert sorted(described) == sorted(bug.name for bug in BUGS)


@each_section
def test_section_has_the_dates_of_its_switch(section: Finding) -> None:
    """It names the releases that introduced the mistake, where they are known, and the fixes."""
    found = _KERNELS.search(section.text)
    assert found, "write Kernels 5.18 to 7.3, and 6.6 from 6.6.8, fixed in 6.12.2 and 7.4; seen on"
    since, fixed = found[1], re.findall(_RELEASE, found[2] or "")
    for name in filter(None, (bug_of(section), *_SWITCH.findall(section.text))):
        switch = BY_NAME[name]
        assert sorted(fixed) == releases(switch.since, switch.backports)
        if switch.introduced is not None:
            named = [re.findall(_RELEASE, since)[0], *re.findall(rf"from\s({_RELEASE})", since)]
            assert sorted(named) == releases(switch.introduced, switch.introduced_stable)


def releases(first: tuple[int, ...] | None, stable: Mapping[tuple[int, int], int]) -> list[str]:
    """The first release with a change, and those of stable series."""
    found = [*([first] if first else []), *((*series, level) for series, level in stable.items())]
    return sorted(".".join(map(str, each)) for each in found)


@each_patch
def test_patch_is_named_by_a_known_bug(patch: Path) -> None:
    assert patch.stem in {bug.name for bug in BUGS}


@each_patch
def test_patch_is_suggested_by_the_section_of_its_bug(patch: Path) -> None:
    named = [bug_of(one) for one in SECTIONS if patch.stem in _PATCH.findall(suggestion_of(one))]
    assert patch.stem in named


@each_patch
def test_patch_is_a_mail(patch: Path) -> None:
    """It says what and why; one patch per file."""
    assert len(series.read(patch).patches) == 1
    message = patch.read_text(encoding="utf-8").partition("\n---\n")[0]
    subject = re.search(r"^Subject: \[PATCH\] [\w/]+: [A-Z].{8,65}$", message, re.MULTILINE)
    assert subject, "Subject: [PATCH] area: What it does"
    assert len(message.split("\n\n", 1)[1].split()) > 20


def test_patches_apply(built_kernel: BuiltKernel) -> None:
    """Each patch applies to 6.12 alone, and all in the order of their names."""
    store, progress = Store(), StreamProgress(sys.stderr)
    tree = SourceTrees(store, progress).path(
        load_catalog().find("6.12").source, built_kernel.revision
    )
    if not tree.is_dir():
        pytest.skip("the kernel is built, its source is not in the store")
    with store.locked("the patches of fixtures/fixes", progress):
        for patch in PATCHES:
            applying.check(series.read(patch).patches, tree, store)
        together = [one for patch in PATCHES for one in series.read(patch).patches]
        applying.check(together, tree, store)


def test_a_fix_may_fix_its_own_bug_only() -> None:
    """Cases of the fixed bug are FIXED, and those of others are not."""
    fixed = case("eprobe.a", Outcome.FIXED, bug="eprobe-sign")
    other = case("filter.a", Outcome.XFAIL, bug="filter-errno")
    assert wrong_about(run(fixed, other), ["eprobe-sign"]) == []
    assert wrong_about(run(other), ["eprobe-sign"]) == ["no case says that eprobe-sign is fixed"]
    assert wrong_about(run(fixed, other), ["filter-errno"]) == [
        "eprobe.a says that eprobe-sign is fixed",
        "filter.a still shows filter-errno",
        "no case says that filter-errno is fixed",
    ]
