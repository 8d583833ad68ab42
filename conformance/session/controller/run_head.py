"""Describe a run: its kernel, its host, and the revision of this suite."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from conformance.results.outcome import Level
from conformance.results.run import KernelFacts, RunHead
from conformance.session.options import value_of
from conformance.session.target.target import Target
from host.programs import ProgramFailed, output_of

_ROOT = Path(__file__).parents[3]
# What a result can depend on.
_SOURCES = ("conformance", "host", "kernels", "vm", "fixtures/modules")
# It looks at every file, on a file system that may be slow and cold.
_GIT_SECONDS = 60.0
#: In an installed suite: the revision of the checkout that it was copied from.
REVISION = "REVISION"


def run_head(target: Target, words: tuple[str, ...], fail_on: Level) -> RunHead:
    """The description of a run that begins now; ``words`` reproduce it with `uevt run`."""
    host = {"accel": "none", "machine": platform.machine(), "kernel": platform.release()}
    if target.accelerator is not None:
        host["accel"] = target.accelerator.name
        host["accel_reason"] = target.accelerator.why
        host["kvm"] = target.accelerator.verdict.value
    return RunHead(
        kernel=KernelFacts(
            id=target.id,
            release=target.release,
            profile=target.profile.name,
            variant=target.variant,
            config_sha256=target.config_sha256,
            source=target.source,
            build=target.build,
            patches=target.patches,
        ),
        host=host,
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        suite=suite_revision(),
        suite_sha256=_digest(),
        asked=words,
        tier=value_of("--tier", words),
        selection=value_of("-k", words),
        self_check=target.is_model,
        fail_on=fail_on,
    )


def suite_revision() -> str:
    """The revision of this suite, "unknown" without git."""
    installed = _ROOT / REVISION
    if installed.exists():
        return installed.read_text().strip()
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return output_of(command, _GIT_SECONDS).strip()
    except ProgramFailed:
        return "unknown"


def _digest() -> str:
    """SHA-256 of every file of the sources."""
    found = hashlib.sha256()
    for source in _SOURCES:
        # Byte code appears during a run and adds nothing to its source.
        names = [
            f"{directory}/{name}"
            for directory, _, files in os.walk(_ROOT / source)
            if not directory.endswith("/__pycache__")
            for name in files
        ]
        for name in sorted(names):
            found.update(f"{os.path.relpath(name, _ROOT)}\0".encode())
            found.update(Path(name).read_bytes() + b"\0")
    return found.hexdigest()
