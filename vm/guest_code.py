"""Byte-code for the guest, which could not write it: its root is read-only or made before."""

from __future__ import annotations

import compileall
from pathlib import Path

_VM = Path(__file__).parent


def compile_agent() -> None:
    """Compile what runs in the guest where that is not done.

    In a checkout that we may not write to a guest only boots slower.
    """
    for source in (_VM / "__init__.py", _VM / "wire.py", *(_VM / "guest").glob("*.py")):
        compileall.compile_file(source, quiet=2)
