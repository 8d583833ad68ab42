"""Filters that compare a number with a CPU set, CPUS{...}, supported since 6.6."""

from conformance.cases.case import UserEvents, spec, surface, variants

DOC = (
    "events.rst@v6.12: Event filtering: CPUS{} holds a list of processors, for scalar fields "
    "too, with ==, != and &"
)
case = surface(
    "filter", doc=DOC, level="detail", profiles="6.4..", needs="processor_sets", tier="full"
)


@case(facilities="smp", bug="filter-odd-size")
@spec("trace_events_filter.c:do_filter_scalar_cpumask")
@variants(
    ("u8", "u8 a", 1, "a & CPUS{0-1}", ("(0)", "(1)")),
    # The low byte of 256 alone would be a CPU.
    ("u16", "u16 a", 2, "a & CPUS{0,1}", ("0x0 (0)", "0x1 (1)")),
    ("u32", "u32 a", 4, "a & CPUS{0-1}", ("0x0 (0)", "0x1 (1)")),
    # Of eight bytes the low four are used.
    ("u64", "u64 a", 8, "a & CPUS{0-1}", ("0x0 (0)", "0x1 (1)", "0x100000000 (4294967296)")),
    ("s8", "s8 a", 1, "a != CPUS{0-1}", ("(0)", "(1)")),
    # No number equals two CPUs.
    ("equal", "u32 a", 4, "a == CPUS{0-1}", ()),
    ("unequal", "u32 a", 4, "a != CPUS{0-1}", ("0x0 (0)", "0x1 (1)")),
    ("three-bytes", "struct s a 3", 3, "a != CPUS{0-1}", ()),
)
def test_processors(
    ue: UserEvents, field: str, size: int, text: str, kept: tuple[str, ...]
) -> None:
    """CPU numbers match a set by & (in it), != (unless all are in it) and == (only that one)."""
    event = ue.event(field, enabled=True)
    filtered = event.directory.set_filter(text)
    if size == 3:
        assert filtered.errno == ue.bug("filter-odd-size", fixed="EINVAL", present="")
    if filtered.errno:
        return
    for number in (0, 1, 200, 256, 1 << 32):
        if number < 1 << 8 * size:
            event.write(number.to_bytes(size, "little"))
    assert ue.tracefs.records() == [ue.line(f"a={shown}") for shown in kept]
    assert event.directory.filter == f"{text}\n"


@case(spec="trace_events_filter.c:parse_pred: a mask of weight one")
@variants(
    ("and", "u8 a", "a & CPUS{0}", (0,)),
    ("equal", "u8 a", "a == CPUS{0}", (0,)),
    ("unequal", "u8 a", "a != CPUS{0}", (1, 3)),
    ("range", "s8 a", "a & CPUS{0-0}", (0,)),
    ("with-others", "u8 a", "a & CPUS{0} || a == 3", (0, 3)),
)
def test_one_processor(ue: UserEvents, field: str, text: str, kept: tuple[int, ...]) -> None:
    """A set of one CPU compares like that CPU's number; & then means ==."""
    event = ue.event(field, enabled=True)
    assert event.directory.set_filter(text).errno == ""
    for number in (0, 1, 3):
        assert event.write(bytes([number])).value == 5
    assert ue.tracefs.records() == [ue.line(f"a=({number})") for number in kept]


@case(spec="trace_events_filter.c:parse_pred")
@variants(
    ("less", "a < CPUS{0}", "     ^\nparse_error: Illegal operation for field type\n"),
    ("text", "s == CPUS{0}", "      ^\nparse_error: Illegal operation for field type\n"),
    ("unopened", "a == CPUS 0}", "           ^\nparse_error: Missing '{'\n"),
    ("unclosed", "a == CPUS{0", "           ^\nparse_error: Missing '}'\n"),
    ("none", "a == CPUS{}", "           ^\nparse_error: Invalid cpulist\n"),
    ("word", "a == CPUS{x}", "            ^\nparse_error: Invalid cpulist\n"),
    ("backwards", "a == CPUS{1-0}", "              ^\nparse_error: Invalid cpulist\n"),
    ("too-many", "a & CPUS{0-8192}", "                ^\nparse_error: Invalid cpulist\n"),
)
def test_processors_refused(ue: UserEvents, text: str, shown: str) -> None:
    """A malformed CPU set, another operator or a string field is EINVAL, with a position."""
    directory = ue.event("u8 a; char[4] s").directory
    assert directory.set_filter(text).errno == "EINVAL"
    assert directory.filter == f"{text}\n{shown}\n"
