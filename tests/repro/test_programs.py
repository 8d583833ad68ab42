"""Programs made from cases: they compile without a warning, and answer on a kernel as the case."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance import repro
from conformance.abi.profile import profile_for
from conformance.cases.variants import all_variants
from conformance.client.addresses import WORDS
from conformance.repro import snippets
from conformance.repro.calls import is_known
from conformance.repro.errors import NotExpressible
from conformance.repro.shell import shell_script
from conformance.repro.source import Description, c_program
from conformance.results.recorded_program import RecordedAnswer, RecordedMemory, RecordedStep
from conformance.runner.model_program import program_of
from tests.ops.test_operations import EXAMPLES

# One of each kind of program; the ABI is that of 6.12 unless named.
CASES = {
    "write.returns_all_bytes.u8": "",
    "smp.neighbours.high": "",
    "tasks.vfork_child_registers_alone.exec": "",
    "enable.fork_follows.4": "",
    "perf.two_events": "",
    "consumers.perf_many": "",
    "uring.short_payload": "",
    "uring.registered_buffer": "",
    "compat.writev.index_split": "",
    "enable.rights_given_up.after_fork": "",
    "trace_pipe.consumes": "",
    "trace.four_bytes.u32": "",
    "delete.string_length.512": "5.19",
    "tasks.passed_holds.sender_closed": "",
    "enable.discarded_often": "",
}
PERFORMED_OTHERWISE = {"Spawn", "SpawnDriver", "Race", "Add", "Irreversible", "Operation"}


def program(case: str, abi: str, *, outlived: bool = False) -> str:
    """The C of a case, or of what the kernel keeps of it."""
    profile = profile_for(abi or "6.12.117")
    (variant,) = [each for each in all_variants() if each.id == case]
    about = Description(case, variant.case.sentence, variant.case.doc, profile.name, outlived)
    return c_program(program_of(variant, profile), profile, about)


def check_compiles(text: str, source: Path) -> None:
    """gcc has no warning."""
    source.write_text(text)
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(("case", "abi"), CASES.items(), ids=CASES)
def test_a_program_compiles_without_a_warning(case: str, abi: str, tmp_path: Path) -> None:
    check_compiles(program(case, abi), tmp_path / "repro.c")


def test_a_program_of_32_bits_is_refused() -> None:
    """It would deviate: the addresses are above 4 GiB, ioctls of 32-bit tasks fail."""
    command = ["gcc", "-m32", "-fsyntax-only", "-nostdinc", "-x", "c", "-"]
    text = program("write.returns_all_bytes.u8", "")
    without_headers = re.sub(r"^#include.*", "", text, flags=re.MULTILINE)
    done = subprocess.run(
        command, input=without_headers, capture_output=True, text=True, timeout=60, check=False
    )
    assert "compile for 64 bits: without -m32" in done.stderr


def test_a_program_has_the_comparisons_that_it_uses() -> None:
    text = program("write.returns_all_bytes.u8", "")
    assert "watch(MAIN," in text
    for unused in ("unwatch", "conforms", "counted", "other_course", "ends with length 0"):
        assert unused not in text
    assert "watch" not in program("bpf.alu.add", "")
    every = "".join(program(case, abi) for case, abi in CASES.items())
    assert [n for n, used in snippets.CONDITIONS.items() if not used.search(every)] == []
    assert "#ifdef" not in every


_ANSWERS = """
int main(int argc, char **argv)
{
	STEP(1, argc > 1 ? atoi(argv[1]) : 0);
	EXPECT_ONE_OF({ .value = 1 }, { .value = 2 });
	STEP(2, argc > 2 ? atoi(argv[2]) : 0);
	EXPECT(.value = 0);
	return 0;
}
"""


def test_only_another_allowed_answer_leaves_a_deviation_undecided(tmp_path: Path) -> None:
    texts, includes = snippets.needed(_ANSWERS, snippets.SHARED)
    source = "\n".join(["#define _GNU_SOURCE", *includes, *texts, _ANSWERS])
    (tmp_path / "answers.c").write_text(source)
    subprocess.run(["gcc", "-o", "answers", "answers.c"], cwd=tmp_path, check=True, timeout=60)

    def status(*answers: str) -> int:
        command = [str(tmp_path / "answers"), *answers]
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode

    assert [status("1", "0"), status("2", "0")] == [0, 0]
    assert [status("1", "5"), status("2", "5"), status("3", "0")] == [1, 4, 1]


@pytest.mark.parametrize("case", ["write.returns_all_bytes.u8", "smp.neighbours.high"])
def test_a_program_waits_for_its_events_to_go(case: str, tmp_path: Path) -> None:
    text = program(case, "", outlived=True)
    assert 'return outlived(perform, "t00001_");' in text
    check_compiles(text, tmp_path / "repro.c")


def test_events_are_not_waited_for_after_execve() -> None:
    with pytest.raises(NotExpressible, match=r"after execve\(2\)"):
        program("tasks.vfork_child_registers_alone.exec", "", outlived=True)


def test_only_a_race_on_two_processors_needs_both() -> None:
    needed = "needs two processors (uevt shell --cpus 2)"
    assert needed in program("smp.neighbours.high", "")
    assert needed not in program("write.returns_all_bytes.u8", "")


@pytest.mark.parametrize(
    ("case", "option"),
    {
        "perf.two_events": "CONFIG_PERF_EVENTS",
        "bpf.program_license.gpl": "CONFIG_BPF_SYSCALL",
        "uring.short_payload": "CONFIG_IO_URING, and io_uring allowed",
        "trigger.hist_target_is_busy": "CONFIG_HIST_TRIGGERS",
        "trace.removed_with_snapshot": "CONFIG_TRACER_SNAPSHOT",
        "eprobe.signed_byte": "CONFIG_KPROBE_EVENTS or CONFIG_UPROBE_EVENTS",
        "rights.user_namespace_commands": "CONFIG_USER_NS",
        "consumers.perf_stat": "the program perf",
        "consumers.trace_cmd_many": "the program stdbuf, the program trace-cmd",
        "consumers.bpftrace": "the program bpftrace",
        "write.returns_all_bytes.u8": "",
    }.items(),
)
def test_a_program_names_what_the_system_lacks(case: str, option: str, tmp_path: Path) -> None:
    text = program(case, "")
    assert ", ".join(re.findall(r"needs (CONFIG.*|the program .*)\"", text)) == option
    check_compiles(text, tmp_path / "repro.c")


def test_a_program_removes_what_another_run_of_it_left() -> None:
    assert 'if (system("rm -rf /tmp/t00001_files"))' in program("consumers.perf_stat", "")


@pytest.mark.parametrize(
    ("case", "abi", "check"),
    [
        ("write.returns_all_bytes.u8", "", ["has_status_page()", "6.4 and later"]),
        ("delete.string_length.512", "5.19", ["!has_status_page()", "5.18 to 6.3"]),
        ("bpf.alu.add", "", []),
    ],
)
def test_a_program_names_the_interface_that_it_needs(case: str, abi: str, check: list[str]) -> None:
    text = program(case, abi)
    found = re.search(r'if \((.*)\) {\n\t\tputs\("needs the user_events of (.*)"\)', text)
    assert list(found.groups() if found else ()) == check


_BECOMES = """
#include <unistd.h>
int main(void)
{
	int signal = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (become(65534, 65534, 0, NULL))
		return 2;
	prctl(PR_GET_PDEATHSIG, &signal);
	return signal != SIGKILL;
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_ends_with_its_parent(tmp_path: Path) -> None:
    text = (Path(repro.__file__).parent / "c/become.c").read_text()
    (tmp_path / "become.c").write_text(f"#define _GNU_SOURCE\n{text}{_BECOMES}")
    subprocess.run(["gcc", "-o", "become", "become.c"], cwd=tmp_path, check=True, timeout=60)
    assert subprocess.run([tmp_path / "become"], check=False, timeout=60).returncode == 0


def test_comments_do_not_nest(tmp_path: Path) -> None:
    step = written("00")
    seen = RecordedAnswer(1, data=b"*/ /* /*/".hex())
    about = Description("a.b", "It reads */ /* /*/.", "", "6.12")
    text = c_program([replace(step, seen=seen)], profile_for("6.12.117"), about)
    assert "/* Observed: " in text
    check_compiles(text, tmp_path / "repro.c")


def test_memory_that_deviates_is_in_a_comment(tmp_path: Path) -> None:
    changed = (RecordedMemory("p1", WORDS, "21000000"), RecordedMemory("p1", WORDS + 8, None))
    expected = tuple(replace(each, content="20000000") for each in changed)
    spawn = RecordedStep({"op": "Spawn", "actor": "p1"}, (RecordedAnswer(0),), RecordedAnswer(0))
    operation = {"op": "Close", "actor": "p1", "slot": 4}
    step = RecordedStep(operation, (RecordedAnswer(0, memory=expected),))
    about = Description("a.b", "It closes.", "", "6.12")
    texts = {}
    for name, memory in (("same", expected), ("other", changed)):
        seen = RecordedAnswer(0, memory=memory)
        steps = [spawn, replace(step, seen=seen)]
        texts[name] = c_program(steps, profile_for("6.12.117"), about)
    assert "Observed" not in texts["same"]
    assert "/* Observed in memory (MAIN, WORDS): 21 00 00 00 */" in texts["other"]
    assert "/* Observed in memory (MAIN, WORDS + 0x8): not readable */" in texts["other"]
    check_compiles(texts["other"], tmp_path / "repro.c")


def test_every_operation_has_its_c() -> None:
    missing = {type(each).__name__ for each in EXAMPLES.values() if not is_known(type(each))}
    assert missing <= PERFORMED_OTHERWISE


def written(data: str) -> RecordedStep:
    operation = {"op": "WriteFile", "actor": "root", "path": "/t/f", "data": {"hex": data}}
    return RecordedStep(operation | {"flags": 1}, (RecordedAnswer(2),), RecordedAnswer(2))


def test_a_program_of_files_is_a_shell_script() -> None:
    about = Description("files.written", "A file is written.", "", "6.12")
    text = shell_script([written("270a")], about)
    assert "(printf -- '\\047\\012' >> /t/f) 2>/dev/null\nexpect 1 success $?" in text
    assert "exit 4" in text
    closing = RecordedStep({"op": "Close", "actor": "p1", "slot": 4}, (RecordedAnswer(0),))
    with pytest.raises(NotExpressible, match=r"step 2 \(Close\) is no read or write of a file"):
        shell_script([written("00"), closing], about)
