"""User modules on a fake guest: results of loads and unloads."""

from __future__ import annotations

from errno import EAGAIN, EBUSY, ENODEV
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.cases.case import Case
from conformance.ops.calls import Call
from conformance.results.case_result import CaseResult, Evidence, Report
from conformance.results.outcome import Blame, Outcome, RunVerdict
from conformance.runner.judgement import Judgement
from conformance.runner.user_module import UserModule
from conformance.runner.user_modules import ModuleNotLoaded, UserModules
from conformance.session.controller.recorder import Recorder
from conformance.session.target.target import Target
from tests.cases.variants import judged
from tests.runner.fake_guest import PLAIN, Guest, running
from vm.kernel_log.lines import MARK_PREFIX

FINIT_MODULE, DELETE_MODULE = 313, 176


class Panic(Exception):
    """The error of a guest that crashes in a call."""


class Unplugged(Exception):
    """The error of a guest whose host fails."""


def explain(error: BaseException, before: bool) -> Judgement | None:
    if isinstance(error, Panic):
        return Judgement(Outcome.CRASH, Blame.KERNEL, "the guest crashed: Oops", "Oops")
    if isinstance(error, Unplugged):
        return Judgement(Outcome.ERROR, Blame.HOST, "no host")
    return None


class ModuleGuest(Guest):
    """A guest that answers module calls with given errors, each once, then with success."""

    def __init__(self, **answers: list[int | Exception]) -> None:
        super().__init__(texts={"/sys/module/Mine/taint": "OE\n"})
        self._answers = {int(name.lstrip("_")): list(each) for name, each in answers.items()}
        self.says: dict[int, str] = {}
        self._console = []

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call)
        number = call[1]
        if call[0] == "sys" and number in (FINIT_MODULE, DELETE_MODULE):
            if number in self.says:
                self._console.append(self.says[number])
            answers = self._answers.get(number, [])
            answer = answers.pop(0) if answers else 0
            if isinstance(answer, Exception):
                raise answer
            result["errno"] = answer
        return result

    @property
    def asked(self) -> list[object]:
        """The loads and unloads."""
        called = [call[1] for call in self.calls if call[0] == "sys"]
        return [number for number in called if number in (FINIT_MODULE, DELETE_MODULE)]

    @property
    def written(self) -> bytes:
        """The files of modules."""
        spilt = [call for call in self.calls if call[0] == "spill" and str(call[1]).endswith(".ko")]
        return b"".join(bytes.fromhex(str(call[2])) for call in spilt)

    def mark(self, text: str) -> int:
        self._console.append(f"[    1.000000] {MARK_PREFIX}{text}")
        return len(self._console) - 1

    def reports(self, since: int) -> list[Report]:
        return [each for each in super().reports(since) if each.title.startswith("WARNING: ")]


@pytest.fixture
def module(tmp_path: Path) -> UserModule:
    """A module of some bytes."""
    file = tmp_path / "mine.ko"
    file.write_bytes(b"\x7fELF" + b"x" * 5_000_000)
    return UserModule("Mine", file, "Mine 0123")


def run(
    guest: ModuleGuest, *modules: UserModule, case: Case = PLAIN
) -> tuple[CaseResult, dict[str, CaseResult]]:
    """Run one case without operations, and unload; its result, and the others."""
    runner = running(guest, explain=explain, user_modules=modules)
    result = judged(runner, case)
    runner.finish()
    return result, {each.id: each for each in runner.take_other_results()}


def test_module_is_loaded_and_unloaded(module: UserModule) -> None:
    guest = ModuleGuest()
    result, beside = run(guest, module)
    assert result.outcome is Outcome.PASS
    assert {id: each.outcome for id, each in beside.items()} == {
        "module.mine.load": Outcome.PASS,
        "module.mine.unload": Outcome.PASS,
    }
    assert beside["module.mine.load"].reason == "Mine loaded, taints the kernel: OE"
    # Larger than one message.
    assert guest.written == module.file.read_bytes()


def test_refused_module_is_tried_once(module: UserModule) -> None:
    guest = ModuleGuest(_313=[ENODEV])
    runner = running(guest, explain=explain, user_modules=[module])
    for _ in range(3):
        with pytest.raises(Exception, match="Mine is not in the kernel"):
            runner.begin(PLAIN, PLAIN.id)
        runner.end(PLAIN, PLAIN.id, ModuleNotLoaded(module))
    assert guest.asked == [FINIT_MODULE]


def test_report_while_loading_is_blamed_on_the_module(module: UserModule) -> None:
    guest = ModuleGuest()
    guest.says[FINIT_MODULE] = "WARNING: CPU: 0 PID: 1 at mine.c:1"
    result, beside = run(guest, module)
    load = beside["module.mine.load"]
    assert (load.outcome, load.blame) == (Outcome.FAIL, Blame.MODULE)
    assert load.reason.startswith("the kernel complained as Mine was loaded: WARNING: CPU")
    # The module is loaded, so cases are judged.
    assert result.outcome is Outcome.PASS


def test_module_that_panics_is_not_tried_again(module: UserModule) -> None:
    guest = ModuleGuest(_313=[Panic(), Panic()])
    result, beside = run(guest, module)
    assert result.outcome is Outcome.SKIP
    (load,) = beside.values()
    assert (load.outcome, load.blame) == (Outcome.CRASH, Blame.MODULE)
    assert load.reason == "load: the guest crashed: Oops"
    assert guest.asked == [FINIT_MODULE]


def test_error_of_the_host_is_not_blamed_on_the_module(module: UserModule) -> None:
    result, beside = run(ModuleGuest(_313=[Unplugged()]), module)
    assert (result.outcome, result.blame) == (Outcome.ERROR, Blame.HOST)
    # At the end the guest was replaced, and the module loaded and unloaded there.
    assert {each.outcome for each in beside.values()} == {Outcome.PASS}


def test_busy_module_is_unloaded_later(module: UserModule) -> None:
    guest = ModuleGuest(_176=[EAGAIN, EAGAIN])
    _, beside = run(guest, module)
    assert beside["module.mine.unload"].outcome is Outcome.PASS
    assert guest.asked.count(DELETE_MODULE) == 3


def test_module_that_stays_is_a_failure(module: UserModule) -> None:
    _, beside = run(ModuleGuest(_176=[EBUSY]), module)
    unload = beside["module.mine.unload"]
    assert (unload.outcome, unload.blame) == (Outcome.FAIL, Blame.MODULE)
    assert unload.reason == "the kernel does not unload Mine: EBUSY (Device or resource busy)"


def test_new_guest_gets_its_modules_again(module: UserModule) -> None:
    guest = ModuleGuest()
    runner = running(guest, explain=explain, user_modules=[module])
    runner.begin(PLAIN, PLAIN.id)
    assert runner.end(PLAIN, PLAIN.id, Panic()).outcome is Outcome.CRASH
    runner.begin(PLAIN, PLAIN.id)
    runner.end(PLAIN, PLAIN.id, None)
    assert (len(guest.booted), guest.asked) == (1, [FINIT_MODULE, FINIT_MODULE])


@pytest.mark.parametrize(
    ("console", "blame"),
    [
        ("WARNING: CPU: 0 PID: 9 at mine.c:1 probe+0x1/0x2 [Mine]", Blame.MODULE),
        ("WARNING: CPU: 0 PID: 9 at kernel/fork.c:1\nModules linked in: Mine(OE)", Blame.KERNEL),
    ],
)
def test_report_is_blamed_on_the_module_in_its_stack(
    module: UserModule, console: str, blame: Blame
) -> None:
    evidence = Evidence(console=console)
    failed = CaseResult("write.x", "write", "quick", Outcome.FAIL, Blame.KERNEL, evidence=evidence)
    assert UserModules([module], explain).with_blame(failed).blame is blame


def test_failure_of_one_guest_stands_and_counts_once(tmp_path: Path) -> None:
    target = Target("6.12+mine", "6.12", release="6.12.117")
    recorder = Recorder(target, tmp_path)
    passed = CaseResult("module.mine.load", "module", "quick", Outcome.PASS)
    failed = replace(passed, outcome=Outcome.FAIL, blame=Blame.MODULE, reason="no")
    assert [recorder.other_result(each) for each in (passed, failed, passed)] == [
        True,
        False,
        False,
    ]
    record = recorder.finish(1, "")
    assert record.verdict is RunVerdict.FAIL
    assert [case.outcome for case in record.cases] == [Outcome.FAIL]


def test_what_a_case_left_has_its_place_and_tier(tmp_path: Path) -> None:
    recorder = Recorder(Target("6.12", "6.12", release="6.12.117"), tmp_path)
    case = CaseResult("write.a", "write", "full", Outcome.PASS, file="test_write.py", line=7)
    left = CaseResult("write.a.leftover", "write", "quick", Outcome.FAIL, Blame.KERNEL)
    assert recorder.located(left) == left
    recorder.case(case)
    found = recorder.located(left)
    assert (found.location, found.tier) == ("test_write.py:7", "full")
