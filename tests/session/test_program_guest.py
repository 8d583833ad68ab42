"""Programs of the user run one after another in a guest of 6.12."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.session.options import default_options
from conformance.session.program_guest import program_guest
from conformance.session.target.target import resolve
from host.deadline import Deadline
from kernels.store.built_kernel import BuiltKernel

SECONDS = 120.0


def test_the_next_program_can_start_at_once(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    """The relay of the last one may still have the port open."""
    target = resolve(default_options(kernel="6.12"))
    with (tmp_path / "output").open("w+b") as output, Path(os.devnull).open("rb") as nothing:
        descriptors = (nothing.fileno(), output.fileno(), output.fileno())
        with program_guest(target, tmp_path) as guest:
            deadline = Deadline(SECONDS, "end of the programs")
            codes = [
                guest.run(["echo", "x"], descriptors=descriptors, deadline=deadline)
                for _ in range(30)
            ]
        output.seek(0)
        assert (set(codes), output.read()) == ({0}, b"x\n" * 30)
