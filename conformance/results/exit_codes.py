"""Exit codes of a run, in the convention of its caller."""

from __future__ import annotations

from enum import StrEnum

from conformance.results.outcome import RunVerdict


class ExitStyle(StrEnum):
    """The convention that exit codes follow."""

    DEFAULT = "default"
    KSELFTEST = "kselftest"
    AUTOPKGTEST = "autopkgtest"
    BISECT = "bisect"
    LTP = "ltp"


class Ending(StrEnum):
    """How a command ended.  For several kernels, the first of this list decides the exit code.

    NOT_APPLICABLE: no case that was asked for applies, or the running system cannot be judged now.
    """

    INTERRUPTED = "interrupted"
    USAGE = "usage"
    HOST = "host"
    BUILD_FAILED = "build_failed"
    UNEXPECTED = "unexpected"
    SKIPPED = "skipped"
    NOT_BUILT = "not_built"
    NOT_APPLICABLE = "not_applicable"
    PASS = "pass"


class KernelOrigin(StrEnum):
    """Whether the kernel is from the catalog or from the user (``--image``, ``--tree``)."""

    CATALOG = "catalog"
    USER = "user"


# The codes of every style: 130 is what a shell reports for SIGINT, and ends git bisect.
_COMMON = {Ending.PASS: 0, Ending.UNEXPECTED: 1, Ending.INTERRUPTED: 130}
# The code of the other endings by style, and those that differ from it.
_STYLES: dict[ExitStyle, tuple[int, dict[Ending, int]]] = {
    ExitStyle.DEFAULT: (3, {Ending.USAGE: 2, Ending.NOT_APPLICABLE: 2}),
    # tools/testing/selftests/kselftest.h: KSFT_PASS 0, KSFT_FAIL 1, KSFT_SKIP 4.
    ExitStyle.KSELFTEST: (1, {Ending.NOT_BUILT: 4, Ending.NOT_APPLICABLE: 4}),
    # autopkgtest, README.package-tests, restriction "skippable": 77 is a skipped test.
    ExitStyle.AUTOPKGTEST: (1, {Ending.NOT_BUILT: 77, Ending.NOT_APPLICABLE: 77}),
    # git-bisect(1), "Bisect run": 125 skips the commit, 128 and above ends the bisection.  Only it
    # can skip a failed build, which gives no verdict.
    ExitStyle.BISECT: (129, {Ending.NOT_BUILT: 125, Ending.BUILD_FAILED: 125}),
    # tst_res_flags.h of LTP: TPASS 0, TFAIL 1, TBROK 2, TCONF 32.
    ExitStyle.LTP: (
        2,
        dict.fromkeys((Ending.NOT_BUILT, Ending.NOT_APPLICABLE, Ending.SKIPPED), 32),
    ),
}
_ENDINGS = {
    RunVerdict.PASS: Ending.PASS,
    RunVerdict.FAIL: Ending.UNEXPECTED,
    RunVerdict.NOT_BUILT: Ending.NOT_BUILT,
    RunVerdict.ERROR: Ending.HOST,
}


def ending_of(verdict: RunVerdict, *, all_skipped: bool = False) -> Ending:
    """The ending of a run with this verdict, which is ERROR if all of its cases were skipped."""
    return Ending.SKIPPED if all_skipped and verdict is RunVerdict.ERROR else _ENDINGS[verdict]


def worst(endings: list[Ending]) -> Ending:
    """The ending that decides the exit code of several runs.  Raises ValueError for none."""
    order = list(Ending)
    return min(endings, key=order.index)


def exit_code(
    ending: Ending,
    style: ExitStyle = ExitStyle.DEFAULT,
    *,
    origin: KernelOrigin = KernelOrigin.CATALOG,
    require: bool = False,
) -> int:
    """The exit code of the process.

    A kernel without user_events is an error if it is in the catalog, and none if the user named it.
    With ``require`` it is unexpected in every style.
    """
    if ending is Ending.NOT_BUILT and require:
        ending = Ending.UNEXPECTED
    if ending is Ending.NOT_BUILT and (style, origin) == (ExitStyle.DEFAULT, KernelOrigin.USER):
        return 0
    other, differing = _STYLES[style]
    return {**_COMMON, **differing}.get(ending, other)
