"""The number of objects that make will compile."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("files", "options", "number"),
    [
        ((), (), 0),
        (("a.c",), (), 1),
        (("both.h",), (), 2),
        (("a.c", "b.c"), (), 2),
        (("c.c", "a.cc"), (), 0),
        ((), ("CONFIG_NET",), 1),
        (("a.c",), ("CONFIG_SMP",), 1),
        ((), ("CONFIG_OTHER", "CONFIG_N"), 0),
    ],
)
def test_outdated_objects_are_counted(
    tmp_path: Path, files: tuple[str, ...], options: tuple[str, ...], number: int
) -> None:
    tree, objects = tmp_path / "tree", tmp_path / "objects"
    (objects / "sub").mkdir(parents=True)
    for name, option in (("a", "SMP"), ("sub/b", "NET")):
        text = COMMANDS.format(name=Path(name).name, tree=tree, option=option)
        (objects / name).with_name(f".{Path(name).name}.o.cmd").write_text(text)
    assert stale_objects(objects, map(tree.joinpath, files), options) == number
    assert compiled_objects(objects) == 2
