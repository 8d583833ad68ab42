"""Exit codes of a run, in the convention of its caller."""

from __future__ import annotations

from enum import StrEnum

from conformance.results.case_result import RunVerdict


class ExitStyle(StrEnum):
    """The convention that exit codes follow."""

    DEFAULT = "default"
    KSELFTEST = "kselftest"
    AUTOPKGTEST = "autopkgtest"
    BISECT = "bisect"
    LTP = "ltp"


class Ending(StrEnum):
    """How a command ended.  For several kernels, the first of this list decides the exit code."""

    INTERRUPTED = "interrupted"
    USAGE = "usage"
    HOST = "host"
    BUILD_FAILED = "build_failed"
    SKIPPED = "skipped"
    UNEXPECTED = "unexpected"
    NOT_BUILT = "not_built"
    NOT_APPLICABLE = "not_applicable"
    PASS = "pass"


class KernelOrigin(StrEnum):
    """Whether the kernel is from the catalog or from the user (``--image``, ``--tree``)."""

    CATALOG = "catalog"
    USER = "user"


# NOT_BUILT in the default style depends on the origin of the kernel: see ``exit_code``.
# A failed build gives no verdict; only git bisect can skip it.
# 130 is what a shell reports for SIGINT; it also ends git bisect (128 and above).
CODES: dict[ExitStyle, dict[Ending, int]] = {
    ExitStyle.DEFAULT: {
        Ending.PASS: 0,
        Ending.UNEXPECTED: 1,
        Ending.BUILD_FAILED: 3,
        Ending.HOST: 3,
        Ending.SKIPPED: 3,
        Ending.USAGE: 2,
        Ending.NOT_APPLICABLE: 2,
        Ending.INTERRUPTED: 130,
    },
    # tools/testing/selftests/kselftest.h: KSFT_PASS 0, KSFT_FAIL 1, KSFT_SKIP 4.
    ExitStyle.KSELFTEST: {
        Ending.PASS: 0,
        Ending.UNEXPECTED: 1,
        Ending.NOT_BUILT: 4,
        Ending.BUILD_FAILED: 1,
        Ending.HOST: 1,
        Ending.SKIPPED: 1,
        Ending.USAGE: 1,
        Ending.NOT_APPLICABLE: 1,
        Ending.INTERRUPTED: 130,
    },
    # autopkgtest, README.package-tests, restriction "skippable": 77 is a skipped test.
    ExitStyle.AUTOPKGTEST: {
        Ending.PASS: 0,
        Ending.UNEXPECTED: 1,
        Ending.NOT_BUILT: 77,
        Ending.BUILD_FAILED: 1,
        Ending.HOST: 1,
        Ending.SKIPPED: 1,
        Ending.USAGE: 1,
        Ending.NOT_APPLICABLE: 1,
        Ending.INTERRUPTED: 130,
    },
    # git-bisect(1), "Bisect run": 125 skips the commit, 128 and above ends the bisection.
    ExitStyle.BISECT: {
        Ending.PASS: 0,
        Ending.UNEXPECTED: 1,
        Ending.NOT_BUILT: 125,
        Ending.BUILD_FAILED: 125,
        Ending.HOST: 129,
        Ending.SKIPPED: 129,
        Ending.USAGE: 129,
        Ending.NOT_APPLICABLE: 129,
        Ending.INTERRUPTED: 130,
    },
    # tst_res_flags.h of LTP: TPASS 0, TFAIL 1, TBROK 2, TCONF 32.
    ExitStyle.LTP: {
        Ending.PASS: 0,
        Ending.UNEXPECTED: 1,
        Ending.NOT_BUILT: 32,
        Ending.NOT_APPLICABLE: 32,
        Ending.BUILD_FAILED: 2,
        Ending.HOST: 2,
        Ending.SKIPPED: 32,
        Ending.USAGE: 2,
        Ending.INTERRUPTED: 130,
    },
}
_NOT_BUILT_BY_DEFAULT = {KernelOrigin.CATALOG: 3, KernelOrigin.USER: 0}
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
    if ending is Ending.NOT_BUILT and style is ExitStyle.DEFAULT:
        return _NOT_BUILT_BY_DEFAULT[origin]
    return CODES[style][ending]
