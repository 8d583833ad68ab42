"""What else than the kernel's behaviour differs between two runs, and may be why."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conformance.report.compare.compare import Comparison, is_one_kernel
from conformance.results.run import KernelFacts
from host.text import one_line

# Options told one by one.
_OPTIONS = 12
_DIGITS = 12
_FOUND_OUT = re.compile(r"CONFIG_(ARCH|HAVE|HAS|CC|GCC|CLANG|AS|LD|GENERIC|RUSTC|PAHOLE|TOOLS)_")


def differences(comparison: Comparison) -> Iterator[str]:
    """A sentence for each thing, printable and of any length."""
    base, new = comparison.base.head, comparison.new.head
    for what, before, after in (
        ("profile", base.kernel.profile, new.kernel.profile),
        ("variant", base.kernel.variant, new.kernel.variant),
        ("source", base.kernel.source, new.kernel.source),
    ):
        if before != after:
            yield _differs(what, before, after)
    yield from _builds(base.kernel, new.kernel)
    yield from _configuration(comparison)
    if base.suite != new.suite:
        yield _differs("suite", base.suite, new.suite)
    elif base.suite.endswith("-dirty"):
        yield f"suite is {one_line(base.suite)} in both, with changes that nobody kept"
    if comparison.rewritten:
        why = "the suite has changed them"
        if base.kernel.profile != new.kernel.profile:
            why = "another contract has others of its own"
            why += ", or the suite has changed them" if base.suite != new.suite else ""
        number = comparison.rewritten
        yield f"programs differ: those of {number} case{'s' * (number != 1)}; {why}"
    for what, key in (("accelerator", "accel"), ("machine", "machine"), ("host kernel", "kernel")):
        if base.host.get(key) != new.host.get(key):
            yield _differs(what, base.host.get(key), new.host.get(key))


def _builds(base: KernelFacts, new: KernelFacts) -> Iterator[str]:
    if base.build is None or new.build is None:
        return
    if is_one_kernel(base, new):
        yield "build is the same: what differs is no change of the kernel"
    elif base.build == new.build:
        yield "build is the same, under another name or contract"
    elif (base.id, base.release, base.source) == (new.id, new.release, new.source):
        yield "build differs: the same name, with other patches, tree, options or compiler"


def _configuration(comparison: Comparison) -> Iterator[str]:
    base, new = (each.head.kernel.config_sha256 for each in (comparison.base, comparison.new))
    if base == new:
        return
    if base is None or new is None:
        side = "base" if base is None else "new"
        yield f"config is not known of the {side} kernel: its options cannot be compared"
    elif comparison.options is None:
        yield f"{_differs('config', base[:_DIGITS], new[:_DIGITS])} (only its digests are known)"
    else:
        options = comparison.options
        # What Kconfig finds out about compiler and architecture is hardly why.
        plain = sorted(options.items(), key=lambda each: bool(_FOUND_OUT.match(each[0])))
        told = [
            f"{one_line(name)} {one_line(was)} -> {one_line(now)}"
            for name, (was, now) in plain[:_OPTIONS]
        ]
        more = len(options) - len(told)
        told += [f"and {more} more (--json has all)"] if more else []
        number = f"{len(options)} option{'s' * (len(options) != 1)}"
        yield f"config differs in {number}: {', '.join(told)}"


def _differs(what: str, before: str | None, after: str | None) -> str:
    return f"{what} differs: {one_line(before or 'none')}, now {one_line(after or 'none')}"
