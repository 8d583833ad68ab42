"""What all tests of the harness share: the kernel, and which tests need it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.cli import main
from host.progress import StreamProgress
from kernels.build.build import ensure
from kernels.catalog.catalog import load_catalog
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store
from tests.cases.variants import PROFILE, Outcome, Variant, all_variants, honest

KERNEL = "6.12"
WITHOUT_USER_EVENTS = "6.12-without-user-events"
# GitHub would annotate its workflow with every run that these tests make.
for _name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
    os.environ.pop(_name, None)
# A shell starts background jobs with SIGINT ignored, and tests interrupt commands by it.
signal.signal(signal.SIGINT, signal.default_int_handler)
_KERNEL_FIXTURES = {"built_kernel", "kernel_without_user_events"}


class Printed(NamedTuple):
    """Standard output and error of a command."""

    out: str
    err: str


Uevt = Callable[..., Printed]


@pytest.fixture
def uevt(capsys: pytest.CaptureFixture[str]) -> Uevt:
    """Run a command of `uevt` in this process, and check its exit code."""

    def run(*words: object, code: int = 0) -> Printed:
        assert main.main([str(word) for word in words]) == code
        return Printed(*capsys.readouterr())

    return run


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the kernel, so that none can forget to say so.

    Their files take longest and come first: two workers then end together.
    """
    for item in items:
        if _KERNEL_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kernel)
    long = {item.path for item in items if item.get_closest_marker("kernel")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def built_kernel(pytestconfig: pytest.Config) -> BuiltKernel:
    """Linux 6.12 from the build store; the first time it is built, which takes minutes."""
    return _built(pytestconfig, KERNEL)


@pytest.fixture(scope="session")
def kernel_without_user_events(pytestconfig: pytest.Config) -> BuiltKernel:
    """The same without CONFIG_USER_EVENTS; the first time it is built, which takes minutes."""
    return _built(pytestconfig, WITHOUT_USER_EVENTS)


def tools_testing(release: str) -> Path:
    """tools/testing of a source tree in the build store, read-only; skips if it has none."""
    trees = sorted(Store().sources.glob(f"linux-source-{release}_*/tools/testing"))
    if not trees:
        pytest.skip(f"the build store has no source of Linux {release}: build that kernel")
    return trees[-1]


def _built(config: pytest.Config, name: str) -> BuiltKernel:
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return ensure(load_catalog().find(name), Store(), progress=StreamProgress(sys.stderr))


@pytest.fixture(scope="session")
def variants() -> list[Variant]:
    """All variants that apply to 6.12."""
    return [variant for variant in all_variants() if variant.case.applies(PROFILE)]


@pytest.fixture(scope="session")
def recorded(variants: list[Variant]) -> dict[str, Outcome]:
    """Each variant's run on the model, by id."""
    return {variant.id: honest(variant) for variant in variants}
