"""The number of objects that make will compile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels.build.stale_objects import compiled_objects, stale_objects

COMMANDS = """\
savedcmd_{name}.o := gcc -c -o {name}.o {tree}/{name}.c

source_{name}.o := {tree}/{name}.c

deps_{name}.o := \\
    $(wildcard include/config/{option}) \\
  {tree}/both.h \\
  include/generated/made.h \\

{name}.o: $(deps_{name}.o)
"""


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """Two objects, and their sources in a directory of their own."""
    tree, made = tmp_path / "tree", tmp_path / "objects"
    files = ["tree/a.c", "tree/b.c", "tree/both.h", "objects/include/generated/made.h"]
    for file in map(tmp_path.joinpath, [*files, "objects/a.o", "objects/b.o"]):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (20, 20) if file.suffix == ".o" else (10, 10))
    for name, option in (("a", "SMP"), ("b", "NET")):
        text = COMMANDS.format(name=name, tree=tree, option=option)
        (made / f".{name}.o.cmd").write_text(text)
    return made


@pytest.mark.parametrize(
    ("newer", "options", "number"),
    [
        ("", (), 0),
        ("../tree/a.c", (), 1),
        ("../tree/both.h", (), 2),
        ("include/generated/made.h", (), 2),
        ("", ("CONFIG_NET",), 1),
        ("", ("CONFIG_OTHER",), 0),
    ],
)
def test_outdated_objects_are_counted(
    objects: Path, newer: str, options: tuple[str, ...], number: int
) -> None:
    if newer:
        os.utime(objects / newer, (30, 30))
    assert stale_objects(objects, options) == number
    assert compiled_objects(objects) == 2


def test_missing_object_is_compiled(objects: Path) -> None:
    (objects / "a.o").unlink()
    assert stale_objects(objects, ()) == 1
