"""Differences between two runs other than outcomes, which may be the cause."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conformance.report.compare.compare import Comparison, is_one_kernel
from conformance.results.run import KernelFacts
from host.text import counted, one_line

# Options that are named.
_OPTIONS = 12
_DIGITS = 12
_DETECTED = re.compile(r"CONFIG_(ARCH|HAVE|HAS|CC|GCC|CLANG|AS|LD|GENERIC|RUSTC|PAHOLE|TOOLS)_")


def differences(comparison: Comparison) -> Iterator[str]:
    """One printable sentence of any length for each difference."""
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
        yield f"suite is {one_line(base.suite)} in both, with uncommitted changes"
    if comparison.programs_changed:
        same = base.suite == new.suite
        why = "they depend on the answers" if same else "changed by the suite"
        if base.kernel.profile != new.kernel.profile:
            why = "they depend on the profile"
            why += ", or the suite changed" if not same else ""
        yield f"programs differ in {counted(comparison.programs_changed, 'case')}: {why}"
    for what, key in (("accelerator", "accel"), ("machine", "machine"), ("host kernel", "kernel")):
        if base.host.get(key) != new.host.get(key):
            yield _differs(what, base.host.get(key), new.host.get(key))


def _builds(base: KernelFacts, new: KernelFacts) -> Iterator[str]:
    if base.build is None or new.build is None:
        return
    if is_one_kernel(base, new):
        yield "build is the same: the kernel did not change"
    elif base.build == new.build:
        yield "build is the same, with another name or profile"
    elif (base.id, base.release, base.source) == (new.id, new.release, new.source):
        yield "build differs in patches, tree, options or compiler, under the same name"


def _configuration(comparison: Comparison) -> Iterator[str]:
    base, new = (each.head.kernel.config_sha256 for each in (comparison.base, comparison.new))
    if base == new:
        return
    if base is None or new is None:
        side = "base" if base is None else "new"
        yield f"config of the {side} kernel is unknown: options cannot be compared"
    elif comparison.options is None:
        yield f"{_differs('config', base[:_DIGITS], new[:_DIGITS])} (only its digests are known)"
    else:
        options = comparison.options
        # Options that Kconfig detects, such as compiler features, come last.
        plain = sorted(options.items(), key=lambda each: bool(_DETECTED.match(each[0])))
        shown = [
            f"{one_line(name)} {one_line(was)} -> {one_line(now)}"
            for name, (was, now) in plain[:_OPTIONS]
        ]
        more = len(options) - len(shown)
        shown += [f"and {more} more (--json has all)"] if more else []
        number = counted(len(options), "option")
        yield f"config differs in {number}: {', '.join(shown)}"


def _differs(what: str, before: str | None, after: str | None) -> str:
    return f"{what} differs: {one_line(before or 'none')}, now {one_line(after or 'none')}"
