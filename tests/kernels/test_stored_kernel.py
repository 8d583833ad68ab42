"""Linux 6.12 as it is in the store."""

from __future__ import annotations

import hashlib

from host.progress import Step
from kernels import kconfig
from kernels.build.build import ensure
from kernels.catalog.catalog import load_catalog
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store


def test_image_has_a_setup_header(built_kernel: BuiltKernel) -> None:
    # Documentation/arch/x86/boot.rst: the setup header's magic is at 0x202.
    assert built_kernel.image.read_bytes()[0x202:0x206] == b"HdrS"
    assert built_kernel.image.name == "bzImage"


def test_every_wanted_option_is_in_the_configuration(built_kernel: BuiltKernel) -> None:
    text = built_kernel.config.read_text()
    assert kconfig.lost(built_kernel.wanted, text) == ()
    assert "CONFIG_USER_EVENTS=y" in built_kernel.wanted
    assert hashlib.sha256(text.encode()).hexdigest() == built_kernel.config_sha256


def test_record_names_release_and_revision(built_kernel: BuiltKernel) -> None:
    assert built_kernel.kernel_id == "6.12"
    assert built_kernel.release.startswith("6.12.")
    assert built_kernel.abi == built_kernel.release
    assert built_kernel.revision.startswith(built_kernel.release)
    assert built_kernel.source == f"linux-source-6.12 {built_kernel.revision}"


def test_stored_kernel_is_not_built_again(built_kernel: BuiltKernel) -> None:
    steps: list[Step] = []
    assert ensure(load_catalog().find("6.12"), Store(), progress=steps.append) == built_kernel
    assert steps == []
