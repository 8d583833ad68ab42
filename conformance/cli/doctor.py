"""`uevt doctor`: check whether this machine can run the suite; one finding per requirement."""

from __future__ import annotations

import argparse
import shutil
import sys

from msgspec import Struct
from msgspec.structs import asdict

from conformance.cli.output import print_json
from conformance.results.exit_codes import Ending, exit_code
from conformance.session.target.target import prove_accelerator
from kernels.build.build import BUILD_TOOLS
from kernels.build.gc import in_mib, usage
from kernels.catalog.catalog import load_catalog
from kernels.catalog.entries import KernelEntry
from kernels.errors import KernelsError, StoreUnusable
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store
from kernels.tools import toolchain
from vm.errors import VmError
from vm.qemu.command_line import find_qemu

_MIB = 1 << 20
# The default kernel, which decides the space needed.
_KERNEL = "6.12"


class Finding(Struct, frozen=True):
    """One requirement; ``hint`` says how to meet it."""

    what: str
    ok: bool
    detail: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint and not self.ok else ""
        return f"{'ok     ' if self.ok else 'MISSING'} {self.what:<12} {self.detail}{hint}"


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(perform=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    findings = examine()
    if arguments.json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            sys.stdout.write(f"{finding}\n")
    return exit_code(Ending.PASS if all(finding.ok for finding in findings) else Ending.HOST)


def examine() -> list[Finding]:
    """Check everything.  Nothing is changed; at most the accelerator test boots a guest."""
    entry = load_catalog().find(_KERNEL)
    built = Store().lookup(entry)
    findings = [_qemu(), _tools(), _space(entry, built), _store(built), _kernel(built)]
    if all(finding.ok for finding in findings):
        findings.append(_accelerator(built))
    return findings


def _qemu() -> Finding:
    try:
        return Finding("qemu", True, find_qemu(None))
    except VmError as error:
        return Finding("qemu", False, str(error), error.hint)


def _tools() -> Finding:
    try:
        toolchain.require(BUILD_TOOLS)
    except KernelsError as error:
        return Finding("build tools", False, str(error), error.hint)
    return Finding("build tools", True, f"all that building {_KERNEL} needs")


def _space(entry: KernelEntry, built: BuiltKernel | None) -> Finding:
    store = Store()
    where = next(path for path in (store.root, *store.root.parents) if path.exists())
    free = shutil.disk_usage(where).free // _MIB
    needed = entry.needs.tree_mib + entry.needs.objects_mib
    detail = f"{free} MiB free in {store.root}, a kernel takes {needed} MiB"
    hint = "free some, or set UEVT_CACHE to a directory with more space"
    return Finding("disk space", built is not None or free >= needed, detail, hint)


def _store(built: BuiltKernel | None) -> Finding:
    root, flaw = Store().root, Store().flaw
    if flaw and built is None:
        error = StoreUnusable(root, flaw)
        return Finding("build store", False, str(error), error.hint)
    if not root.is_dir():
        return Finding("build store", True, f"{root} does not exist yet")
    return Finding(
        "build store", True, f"{in_mib(usage(root))} in {root}; uevt kernels gc bounds it"
    )


def _kernel(built: BuiltKernel | None) -> Finding:
    if built is None:
        return Finding("kernel", True, f"{_KERNEL} is not built yet; the first run builds it")
    return Finding("kernel", True, f"{_KERNEL} is built: {built.release} ({built.revision})")


def _accelerator(built: BuiltKernel | None) -> Finding:
    if built is None:
        return Finding("accelerator", True, "tested by a boot, once a kernel is built")
    try:
        accelerator = prove_accelerator(built.image)
    except VmError as error:
        return Finding("accelerator", False, str(error), error.hint)
    return Finding("accelerator", True, f"{accelerator.name}: {accelerator.why or 'proven'}")
