"""user_events_status as text, from 5.18 to 6.3: indexes, Max, and the order of the lines."""

from collections.abc import Sequence

from conformance.cases.case import UserEvents, doc, spec, surface, variants

LINE = "Status: a line is Byte:Name and a comment; Active, Busy and Max follow"
case = surface(
    "status_page",
    spec="user_seq_show",
    doc="@v5.19 and @v6.1: Command Format: flags follow the name, and none "
    "is supported; silent about showing them",
    level="behaviour",
    profiles="5.18..6.3",
    tier="full",
    isolation="global",
)


@case(doc=LINE, level="contract", tier="quick")
@variants(
    ("one-digit", 9, "9:last"), ("two-digits", 10, "10:last"), ("three-digits", 123, "123:last")
)
def test_text_index(ue: UserEvents, count: int, line: str) -> None:
    """A line starts with the decimal number of the event, without padding."""
    ue.tracefs.command("".join(f"u:n{number}\n" for number in range(1, count)) + "u:last\n")
    lines = ue.tracefs.status(whole=True).partition("\n\n")[0].splitlines()
    assert len(lines) == count
    assert [each for each in lines if each.endswith("last")] == [line]


@case(doc=LINE, level="contract", tier="quick")
def test_text_max(ue: UserEvents) -> None:
    """Max is one more than the largest number, however many events there are."""
    one = {"byte-status": 4096, "bit-status": 32768}[ue.profile.generation]
    two = {"byte-status": 8192, "bit-status": 65536}[ue.profile.generation]
    most = ue.dated("two_status_pages", since=two, before=one)
    assert ue.tracefs.status(whole=True) == f"\nActive: 0\nBusy: 0\nMax: {most}\n"
    ue.tracefs.command("u:a\nu:b\n")
    totals = ue.tracefs.status(whole=True).partition("\n\n")[2]
    assert totals == f"Active: 2\nBusy: 0\nMax: {most}\n"


@case(doc="Status: a line is Byte:Name and a comment; silent about places that are used again")
def test_text_reused_index(ue: UserEvents) -> None:
    """A freed number precedes the name of its new event."""
    ue.tracefs.command("u:a\nu:b\n")
    ue.tracefs.command("-:a\nu:c\n")
    lines = ue.tracefs.status(whole=True).partition("\n\n")[0].splitlines()
    assert sorted(lines) == ["1:c", "2:b"]


@case(doc="Status: a line for each event; silent about their order", level="detail", tier="quick")
@spec("user_seq_show (hash_for_each), user_event_key; include/linux/jhash.h:jhash")
@variants(
    # One bucket of 16, four of 256: 98, 104, 108, 109.
    ("one-of-16", "bjlr", "4:r\n3:l\n2:j\n1:b\n", "1:b\n2:j\n3:l\n4:r\n"),
    ("one-of-16-reversed", "rljb", "4:b\n3:j\n2:l\n1:r\n", "4:b\n3:j\n2:l\n1:r\n"),
    # Buckets 0, 3, 7 and 15 of 16; 4, 7, 61, 116, 241, 245 and 254 of 256.
    (
        *("several", "efayucn"),
        "5:u\n2:f\n7:n\n3:a\n6:c\n4:y\n1:e\n",
        "2:f\n5:u\n7:n\n3:a\n6:c\n4:y\n1:e\n",
    ),
    (
        *("one-of-256", ("test", "testnl", "testqw", "testyv")),
        "4:testyv\n3:testqw\n2:testnl\n1:test\n",
        "4:testyv\n3:testqw\n2:testnl\n1:test\n",
    ),
)
def test_text_order(ue: UserEvents, names: Sequence[str], of_16: str, of_256: str) -> None:
    """Lines are in the order of hash buckets, 16 and since 6.1 256, newest first in each."""
    ue.tracefs.command("".join(f"u:{name}\n" for name in names))
    shown = {"byte-status": of_16, "bit-status": of_256}
    assert ue.tracefs.status(whole=True).partition("\nActive")[0] == shown[ue.profile.generation]


@case(spec="user_seq_show (hash_for_each), hash_add", level="detail")
@doc("Status: a line for each event; silent about their order")
def test_text_order_of_a_new_one(ue: UserEvents) -> None:
    """An event that was deleted and created again is the newest of its bucket."""
    ue.tracefs.command("u:b\nu:j\nu:l\n")
    ue.tracefs.command("-:b\nu:b\n")
    shown = {"byte-status": "1:b\n3:l\n2:j\n", "bit-status": "1:b\n2:j\n3:l\n"}
    assert ue.tracefs.status(whole=True).partition("\nActive")[0] == shown[ue.profile.generation]


@case(spec="user_seq_show; user_event_parse_flags, as it was first", profiles="5.18..6.0")
@variants(
    ("alone", ":BPF_ITER", "# FLAG:BPF_ITER"),
    ("among_others", ":ONE,BPF_ITER,TWO", "# FLAG:BPF_ITER"),
    ("twice", ":BPF_ITER,BPF_ITER u32 a", "# FLAG:BPF_ITER"),
    ("other", ":BPF", ""),
    ("longer", ":BPF_ITERS", ""),
    ("small", ":bpf_iter", ""),
    ("empty", ":", ""),
    ("behind_a_colon", "::BPF_ITER", ""),
)
def test_text_flag(ue: UserEvents, flags: str, shown: str) -> None:
    """No flag is shown; the first kernels show BPF_ITER after the tracers."""
    data = ue.register(f"e{flags}")
    flag = ue.dated("bpf_iter_ignored", since="", before=f" {shown}" if shown else "")
    assert ue.tracefs.status(whole=True).partition("\n\n")[0] == f"1:e{flag}"
    # Only the registration that creates the event decides.
    data.register("e:BPF_ITER")
    assert ue.tracefs.status(whole=True).partition("\n\n")[0] == f"1:e{flag}"
    ue.tracefs.enable("e")
    flag = flag.replace("#", "# Used by ftrace") or " # Used by ftrace"
    assert ue.tracefs.status(whole=True).partition("\n\n")[0] == f"1:e{flag}"


@case(spec="user_seq_show; user_event_parse_flags, as it was first", profiles="5.18..6.0")
def test_text_flag_of_dynamic_events(ue: UserEvents) -> None:
    """dynamic_events accepts the flag like the ioctl, and does not show it."""
    assert ue.tracefs.command("u:e:BPF_ITER u32 a; u64 b\nu:g:ONE u32 a\n").value == 40
    assert ue.tracefs.dynamic_events(whole=True) == "u:e u32 a; u64 b\nu:g u32 a\n"
    ue.tracefs.enable("g")
    flag = ue.dated("bpf_iter_ignored", since="", before=" # FLAG:BPF_ITER")
    shown = sorted(ue.tracefs.status(whole=True).partition("\n\n")[0].splitlines())
    assert shown == [f"1:e{flag}", "2:g # Used by ftrace"]
    # A tracer alone makes the event busy.
    assert ue.tracefs.status(whole=True).endswith("\nActive: 2\nBusy: 1\nMax: 4096\n")


@case(spec="user_seq_show; user_event_parse_flags, as it was first", profiles="5.18..6.0")
def test_text_flag_kept(ue: UserEvents) -> None:
    """An event keeps its flag when it is registered without, until it is deleted."""
    data = ue.register("e:BPF_ITER u32 a")
    flag = ue.dated("bpf_iter_ignored", since="", before=" # FLAG:BPF_ITER")
    assert data.register("e u32 a").index == 0
    assert ue.tracefs.command("u:e:OTHER u32 a\n").ok
    assert ue.tracefs.status(whole=True).partition("\n\n")[0] == f"1:e{flag}"
    data.close()
    assert ue.tracefs.command("-:e\n").ok
    ue.tracefs.command("u:e u32 a\n")
    assert ue.tracefs.status(whole=True).partition("\n\n")[0] == "1:e"
