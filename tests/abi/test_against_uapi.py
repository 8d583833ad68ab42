"""The tables of conformance.abi against the headers of a built kernel.

The header is compiled as a 64-bit program, which runs, and checked as 32-bit code, which needs no
32-bit C library.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from conformance.abi import bpf as bpf_layouts
from conformance.abi import grammar, uapi
from conformance.abi.uapi import Layout
from conformance.ops import bpf_opcodes
from conformance.ops.bpf_opcodes import Alu, Class, Jump, Size
from host.progress import silent
from kernels.catalog.catalog import load_catalog
from kernels.sources.unpacked import SourceTrees
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store

# Check 32-bit code without output.  Distributions may keep <asm/types.h> of 32 bits apart; it is
# the same for both sizes.
CHECK_ONLY = ("-m32", "-ffreestanding", "-fsyntax-only")
LAYOUTS = (uapi.USER_REG, uapi.USER_UNREG)
NUMBERS = ("DIAG_IOCSREG", "DIAG_IOCSDEL", "DIAG_IOCSUNREG")
FLAGS = ("USER_EVENT_REG_PERSIST", "USER_EVENT_REG_MULTI_FORMAT")
DYNAMIC = ((0, 0), (16, 5), (0xFFFF, 1), (1, 0x7FFF))


@pytest.fixture(scope="module")
def source(built_kernel: BuiltKernel) -> Path:
    """The source tree of the built kernel."""
    entry = load_catalog().find(built_kernel.name)
    trees = SourceTrees(Store(), silent)
    tree = trees.path(entry.source, built_kernel.revision)
    assert tree.is_dir(), f"{tree} is gone: build {built_kernel.kernel_id} again"
    return tree


@pytest.fixture(scope="module")
def header(source: Path) -> Path:
    """The header user_events.h."""
    return source / "include/uapi/linux/user_events.h"


def compile_c(code: str, header: Path | None, *options: str) -> None:
    """Compile a program that includes the header; a failure shows the compiler's output."""
    command = ["gcc", "-Wall", "-Werror", *headers_of_the_architecture()]
    command += ["-include", str(header)] if header else []
    result = subprocess.run(
        [*command, "-x", "c", *options, "-"],
        input=code,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr


def headers_of_the_architecture() -> list[str]:
    """Where Debian keeps <asm/types.h>; other compilers find it without help."""
    result = subprocess.run(
        ["gcc", "-print-multiarch"], capture_output=True, text=True, check=True, timeout=10
    )
    triplet = result.stdout.strip()
    return ["-idirafter", f"/usr/include/{triplet}"] if triplet else []


def facts(*, compat: bool) -> dict[str, int]:
    """C expression to the value in the tables."""
    # The numbers carry the size of a pointer: 4 in a 32-bit program, for 8.
    smaller = 4 << 16 if compat else 0
    numbers = {number: getattr(uapi, number) - smaller for number in NUMBERS}
    numbers |= {flag: getattr(uapi, flag) for flag in FLAGS}
    for layout in LAYOUTS:
        numbers |= layout_facts(layout)
    numbers |= {f"DYN_LOC({a}, {b})": uapi.dyn_loc(a, b) for a, b in DYNAMIC}
    return numbers


def layout_facts(layout: Layout) -> dict[str, int]:
    """The same of a structure."""
    numbers = {f"sizeof(struct {layout.name})": layout.size}
    for member in layout.members:
        field = f"struct {layout.name}, {member.name}"
        numbers[f"__builtin_offsetof({field})"] = member.offset
        numbers[f"sizeof(((struct {layout.name} *)0)->{member.name})"] = member.size
    return numbers


def test_tables_match_a_64_bit_program(header: Path, tmp_path: Path) -> None:
    expected = facts(compat=False)
    shown = "".join(f'    printf("%llu\\n", (unsigned long long)({text}));\n' for text in expected)
    program = tmp_path / "facts"
    code = f"#include <stdio.h>\nint main(void)\n{{\n{shown}    return 0;\n}}\n"
    compile_c(code, header, "-m64", "-o", str(program))
    result = subprocess.run([program], capture_output=True, text=True, check=True, timeout=10)
    found = dict(zip(expected, map(int, result.stdout.split()), strict=True))
    assert found == expected


def test_tables_match_32_bit_code(header: Path) -> None:
    compile_c(asserted(facts(compat=True)), header, *CHECK_ONLY)


def test_32_bit_code_rejects_the_64_bit_numbers(header: Path) -> None:
    # This shows that the check above can fail.
    with pytest.raises(AssertionError, match="DIAG_IOCSREG"):
        compile_c(asserted(facts(compat=False)), header, *CHECK_ONLY)


def asserted(expected: dict[str, int]) -> str:
    """The facts as static assertions."""
    return "".join(
        f'_Static_assert(({text}) == {value}U, "{text}");\n' for text, value in expected.items()
    )


PACKED = "__attribute__((__packed__))"


@pytest.mark.parametrize(
    ("layout", "bits", "attribute"),
    [
        pytest.param(uapi.USER_REG_BYTE_STATUS, 64, "", id="5.18"),
        pytest.param(uapi.USER_REG_BIT_STATUS, 64, PACKED, id="6.1"),
        pytest.param(uapi.USER_REG_BIT_STATUS, 32, PACKED, id="6.1-i386"),
        pytest.param(uapi.USER_BPF_CONTEXT, 64, "", id="bpf-context"),
        pytest.param(uapi.USER_BPF_ITER, 64, "", id="bpf-iter"),
    ],
)
def test_layouts_of_other_releases_agree_with_the_compiler(
    layout: Layout, bits: int, attribute: str
) -> None:
    types = {4: "unsigned int", 8: "unsigned long long"}
    members = "".join(f"    {types[member.size]} {member.name};\n" for member in layout.members)
    code = f"struct {layout.name} {{\n{members}}} {attribute};\n{asserted(layout_facts(layout))}"
    compile_c(code, None, f"-m{bits}", "-ffreestanding", "-fsyntax-only")


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_structures_have_every_member(header: Path, layout: Layout) -> None:
    body = re.search(rf"^struct {layout.name} {{(.*?)^}}", header.read_text(), re.S | re.M)
    assert body is not None
    declared = re.findall(r"^\t__u\d+\t(\w+);$", body[1], re.M)
    assert [member.name for member in layout.members] == declared
    assert sum(member.size for member in layout.members) == layout.size


def test_flags_are_complete(header: Path) -> None:
    body = re.search(r"^enum user_reg_flag {(.*?)^}", header.read_text(), re.S | re.M)
    assert body is not None
    declared = re.findall(r"^\t(USER_EVENT_REG_\w+)\s*=", body[1], re.M)
    assert declared == [*FLAGS, "USER_EVENT_REG_MAX"]


def test_bpf_tables_match_the_header(source: Path) -> None:
    compile_c(asserted(bpf_facts()), source / "include/uapi/linux/bpf.h", "-fsyntax-only")


def bpf_facts() -> dict[str, int]:
    """C expression to the value in the BPF tables and the assembler."""
    layouts = (bpf_layouts.MAP_CREATE, bpf_layouts.MAP_ELEM, bpf_layouts.PROG_LOAD)
    members = {each.name: each for layout in layouts for each in layout.members}
    numbers = {f"__builtin_offsetof(union bpf_attr, {n})": m.offset for n, m in members.items()}
    numbers |= {f"sizeof(((union bpf_attr *)0)->{n})": m.size for n, m in members.items()}
    for prefix, enums in {
        "BPF_": (bpf_layouts.Command, Class, Size, Alu, Jump),
        "BPF_MAP_TYPE_": (bpf_layouts.MapType,),
        "BPF_PROG_TYPE_": (bpf_layouts.ProgramType,),
    }.items():
        numbers |= {prefix + each.name: each.value for kind in enums for each in kind}
    numbers |= {f"BPF_FUNC_{each.name.lower()}": each.value for each in bpf_layouts.Helper}
    for name in ("XADD", "MEM", "IMM", "TO_LE", "TO_BE"):
        numbers[f"BPF_{name}"] = getattr(bpf_opcodes, name)
    for name in ("BPF_ANY", "BPF_NOEXIST", "BPF_EXIST", "BPF_F_STRICT_ALIGNMENT"):
        numbers[name] = getattr(bpf_layouts, name)
    numbers["BPF_PSEUDO_MAP_FD"] = bpf_layouts.PSEUDO_MAP_FD
    return numbers


def test_names_match_the_header(header: Path) -> None:
    texts = dict(re.findall(r'^#define (\w+) "(.*)"$', header.read_text(), re.M))
    assert texts == {
        "USER_EVENTS_SYSTEM": grammar.SYSTEM,
        "USER_EVENTS_MULTI_SYSTEM": grammar.MULTI_SYSTEM,
        "USER_EVENTS_PREFIX": grammar.PREFIX,
    }


@pytest.fixture(scope="module")
def implementation(source: Path) -> str:
    """kernel/trace/trace_events_user.c."""
    return (source / "kernel/trace/trace_events_user.c").read_text()


def test_limits_match_the_implementation(implementation: str) -> None:
    limits = dict(re.findall(r"^#define (MAX_\w+) (\w+)$", implementation, re.M))
    assert limits["MAX_EVENT_DESC"] == str(grammar.MAX_EVENT_DESC)
    assert limits["MAX_FIELD_ARRAY_SIZE"] == str(grammar.MAX_FIELD_ARRAY_SIZE)


def test_types_match_the_implementation(implementation: str) -> None:
    body = function(implementation, "user_field_format")
    pairs = re.findall(r'strcmp\(type, "([^"]+)"\) == 0\)\s+return "([^"]+)"', body)
    assert {name: scalar.conversion for name, scalar in grammar.SCALARS.items()} == dict(pairs)


def test_sizes_match_the_implementation(implementation: str) -> None:
    body = function(implementation, "user_field_size")
    sized = re.findall(r'strcmp\(type, "([^"]+)"\) == 0\)\s+return sizeof\(([^)]+)\)', body)
    bits = re.compile(r"[su](\d+)$")
    known = {"char": 1, "short": 2, "int": 4}
    sizes = {
        name: int(found[1]) // 8 if (found := bits.match(kind)) else known[kind.split()[-1]]
        for name, kind in sized
    }
    assert {name: scalar.size for name, scalar in grammar.SCALARS.items()} == sizes


def function(source: str, name: str) -> str:
    """The body of a function in kernel style."""
    found = re.search(rf"^static [^\n]*\b{name}\(.*?^}}$", source, re.S | re.M)
    assert found is not None, f"no function {name}"
    return found[0]
