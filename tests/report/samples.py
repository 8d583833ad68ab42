"""Results and runs for tests of reports, plain and hostile ones."""

from __future__ import annotations

import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.results.case_result import CaseResult, Evidence, Mismatch, Rerun, Which
from conformance.results.contradiction import Contradiction
from conformance.results.judging import settle
from conformance.results.outcome import Blame, Level, Outcome, SkipReason
from conformance.results.recorded_program import RecordedAnswer, RecordedMemory, RecordedStep
from conformance.results.results_json import NAME, write_results
from conformance.results.run import Functions, KernelFacts, RunHead, RunRecord

_T = TypeVar("_T")
# A deadline per example would measure the host.
UNHURRIED = settings(deadline=None, max_examples=60)

BLAMES = {
    **dict.fromkeys(Outcome, Blame.KERNEL),
    **dict.fromkeys((Outcome.PASS, Outcome.SKIP), Blame.NONE),
    Outcome.ERROR: Blame.HOST,
}


def case(case_id: str, outcome: Outcome = Outcome.PASS, **others: Any) -> CaseResult:
    """A result with the usual blame of its outcome."""
    return CaseResult(
        **{
            "id": case_id,
            "surface": case_id.partition(".")[0],
            "tier": "quick",
            "outcome": outcome,
            "blame": BLAMES[outcome],
            "reason": SkipReason.HOST_TOOL if outcome is Outcome.SKIP else "",
            **others,
        }
    )


def head(**others: Any) -> RunHead:
    """The head of a run of 6.12 under TCG."""
    return RunHead(
        **{
            "kernel": KernelFacts(
                id="6.12",
                release="6.12.117",
                profile="6.12",
                config_sha256="5f0c" * 16,
                source="linux-source-6.12 6.12.117-1~deb12u1",
            ),
            "host": {"accel": "tcg", "accel_reason": "QEMU aborts: failed to set MSR 0x10a"},
            "started": "2026-11-20T17:44:00Z",
            "suite": "0.1.0",
            "asked": ("--kernel=6.12", "--tier=quick", "--isolation=need"),
            **others,
        }
    )


def run(*cases: CaseResult, **others: Any) -> RunRecord:
    """A complete run of these cases."""
    return RunRecord(
        **{
            "head": head(),
            "cases": cases,
            "selected": len(cases),
            "duration_s": 14.23,
            "functions": Functions(1151, 1433),
            **others,
        }
    )


def many_causes() -> list[CaseResult]:
    """Failures for different reasons: write.aa to write.zz."""
    letters = string.ascii_lowercase
    names = [one + other for one in letters for other in letters]
    return [case(f"write.{name}", Outcome.FAIL, reason=f"E{name}") for name in names]


def failure() -> CaseResult:
    """A failure with all kinds of evidence, control characters included."""
    return case(
        "registration.size_short",
        Outcome.FAIL,
        duration_s=0.1234,
        reason="a structure of four bytes is accepted",
        mismatches=(
            Mismatch(4, "errno", "EINVAL", "success"),
            Mismatch(
                6,
                "data",
                "name: short\n\tfield:u8 a;\toffset:8;\n\tfield:u8 b;\toffset:9;\n",
                "name: short\n\tfield:u8 a;\toffset:8;\n\tfield:u8 b;\toffset:12;\n",
            ),
            Mismatch(7, "memory a1 word", "00 00 00 00", "01 00 00 00"),
            Mismatch(0, "literal", "22", "0"),
        ),
        evidence=Evidence(
            steps=(
                '1. a1: fd = open("user_events_data", O_RDWR)',
                "4. a1: ioctl(fd, DIAG_IOCSREG, {size=4, enable_bit=0, enable_size=4,"
                ' enable_addr=&word, name_args="short u8 a; u8 b"}) = 0  /* write_index 0 */',
                '6. a1: cat events/user_events/short/format = "name: short" and 2 more lines',
                "7. a1: word == 0x1",
            ),
            model="step 4: -1 EINVAL",
            kernel="step 4: 0",
            docs="Documentation/trace/user_events.rst@v6.12: size is that of the structure the"
            " caller was built with; the kernel refuses one shorter than the first version.",
            spec="trace_events_user.c:user_reg_get",
            console="[    1.234567] uevt: registration.size_short\r\n"
            "[    1.240000] \x1b[31muser_events: \x00\xff",
        ),
        adapted=("nonspaced_match",),
        sentence="A size below that of the first struct user_reg is refused with EINVAL.",
        file="conformance/cases/registration/test_size.py",
        line=42,
    )


def evidence(text: str) -> Evidence:
    """Evidence with the same text in every part."""
    return Evidence((text,), text, text, text, text)


def mixed() -> RunRecord:
    """A run with one of everything."""
    lost = case("enable.bit_63", Outcome.ERROR, reason="QEMU was ended by signal 9 (SIGKILL)")
    panic = case(
        "delete.busy",
        Outcome.CRASH,
        reason="Kernel panic - not syncing: sysrq triggered crash",
        evidence=Evidence(
            steps=('1. a1: spill("/proc/sysrq-trigger", "c")',),
            console="\n".join(f"[{second:5}.000000] line {second}" for second in range(60)),
        ),
        duration_s=1.5,
    )
    return run(
        case("registration.empty_name"),
        failure(),
        settle(lost, case("enable.bit_63", duration_s=0.25)),
        settle(panic, case("delete.busy")),
        case("write.storm", Outcome.TIMEOUT, reason="no answer to writev within 5 s"),
        case(
            "status.text",
            Outcome.FIXED,
            reason="this kernel does not have the known bug status-header: the header is missing",
            bug="status-header",
        ),
        case(
            "format.array_length",
            Outcome.XFAIL,
            reason="known bug format-array-length: `format` shows an uninitialised length",
            bug="format-array-length",
        ),
        wrong("grammar.order", outcome=Outcome.CHANGED, level=Level.BEHAVIOUR),
        wrong("filters.caret", outcome=Outcome.NOTE, level=Level.DETAIL),
        case("layouts.compat", Outcome.SKIP),
        case("lifetime.fork", Outcome.ERROR, blame=Blame.GUEST, reason="the channel broke"),
    )


def contradiction(switch: str = "ebadf_when_disabled", **others: Any) -> Contradiction:
    """A switch that is on in the profile and off in the kernel."""
    return Contradiction(
        **{
            "switch": switch,
            "measured": False,
            "says": "a write to an event without a tracer fails with EBADF",
            "commit": "tracing/user_events: Fix incorrect return value",
            "case": f"dated.{switch}",
            **others,
        }
    )


def contradicted() -> RunRecord:
    """A run of a kernel that lacks one switch of its profile and has another one."""
    lacking = ("ebadf_when_disabled",)
    return run(
        case("dated.ebadf_when_disabled", Outcome.FAIL, reason="the kernel contradicts switch …"),
        case("write.a", adapted=("ebadf_when_disabled", "persist")),
        case("write.b"),
        case("write.c", Outcome.SKIP, reason=SkipReason.CONTRADICTED, adapted=lacking),
        case("write.d", Outcome.SKIP, reason=SkipReason.CONTRADICTED, adapted=lacking),
        case("layouts.compat", Outcome.SKIP),
        contradictions=(
            contradiction(),
            contradiction("persist", measured=True, case="persist.accepted"),
        ),
    )


TEXTS = st.text(max_size=60)
IDS = st.from_regex(r"[a-z0-9_-]{1,8}(\.[a-z0-9_-]{1,8}){1,2}", fullmatch=True)
RECORDED = RecordedStep(
    {"op": "Load", "actor": "p1", "address": 4096, "length": 4},
    (RecordedAnswer(None, memory=(RecordedMemory("p1", 4096, None),)),),
    RecordedAnswer(4, data="00000001"),
    waited_s=0.5,
)


def tuples(of: st.SearchStrategy[_T], most: int) -> st.SearchStrategy[tuple[_T, ...]]:
    """Tuples of at most so many."""
    return st.lists(of, max_size=most).map(tuple)


@st.composite
def results(
    draw: st.DrawFn,
    texts: st.SearchStrategy[str] = TEXTS,
    ids: st.SearchStrategy[str] = IDS,
    outcomes: Iterable[Outcome] = Outcome,
) -> CaseResult:
    """Any result, with any text."""
    case_id, outcome = draw(ids), draw(st.sampled_from(list(outcomes)))
    blames = st.sampled_from(Blame)
    reasons = st.sampled_from(SkipReason) if outcome is Outcome.SKIP else texts
    programs = st.sampled_from([(), (RECORDED,)])
    evidence = st.builds(
        Evidence, tuples(texts, 3), texts, texts, texts, texts, texts, program=programs
    )
    reruns = st.builds(Rerun, st.sampled_from(Outcome), blames, texts, st.sampled_from(Which))
    return CaseResult(
        id=case_id,
        surface=case_id.partition(".")[0],
        tier=draw(st.sampled_from(["quick", "full"])),
        outcome=outcome,
        blame=draw(blames),
        reason=draw(reasons),
        duration_s=draw(st.floats(0, 1e6)),
        adapted=draw(tuples(texts, 2)),
        mismatches=draw(tuples(st.builds(Mismatch, st.integers(0, 9), texts, texts, texts), 2)),
        evidence=draw(evidence),
        rerun=draw(st.none() | reruns),
        digest=draw(st.none() | texts),
        level=draw(st.sampled_from(Level)),
        bug=draw(st.sampled_from(["", "one-bug", "one-bug another"])),
    )


def contradictions(texts: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[Contradiction]:
    """Any contradicted switch."""
    return st.builds(Contradiction, texts, st.booleans(), texts, texts, IDS)


@st.composite
def runs(draw: st.DrawFn) -> RunRecord:
    """Any run of a kernel, with unique ids."""
    cases = draw(st.lists(results(), max_size=4, unique_by=lambda each: each.id))
    host = {"accel": "tcg", "accel_reason": draw(TEXTS)}
    return RunRecord(
        head(host=host, fail_on=draw(st.sampled_from(Level))),
        tuple(cases),
        len(cases) + draw(st.integers(0, 2)),
        draw(st.floats(0, 1e6)),
        draw(TEXTS),
        contradictions=draw(tuples(contradictions(), 2)),
        functions=draw(st.none() | st.builds(Functions, st.integers(0, 9), st.integers(0, 9))),
    )


def kernel(release: str, *cases: CaseResult, **others: Any) -> RunRecord:
    """A run of these cases on the mainline kernel of a release."""
    facts = {"id": release, "release": release, "profile": release, **others.pop("facts", {})}
    return run(*cases, **{"head": head(kernel=KernelFacts(**facts)), **others})


PATCHED = replace(head().kernel, id="6.12+fix")


def stored(directory: Path, record: RunRecord) -> Path:
    """Write a run into a directory, which may be new."""
    directory.mkdir(parents=True, exist_ok=True)
    write_results(record, directory / NAME)
    return directory


def wrong(
    case_id: str, observed: str = "0", outcome: Outcome = Outcome.FAIL, **others: Any
) -> CaseResult:
    """A case that returned another errno."""
    mismatch = Mismatch(2, "errno", "EINVAL", observed)
    given = {"reason": str(mismatch), "mismatches": (mismatch,), **others}
    return case(case_id, outcome, **given)
