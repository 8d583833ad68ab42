"""Every wrong answer of a kernel is found; an honest kernel passes."""

from __future__ import annotations

import random

import pytest

from conformance import ops
from conformance.client.lockstep import Divergence
from tests.cases.variants import Outcome, Variant, honest
from tests.runner.liar import Lie, lies, tell

# Programs with every kind of operation, answer and watched memory; with work that the kernel does
# later (fork, unregistering, auto-delete, pages to be faulted in), and with open answers (hash
# order, the verifier's log).
EXHAUSTED = (
    *("unregister.child_for_itself", "unregister.clears_at_any_place.u64-bit32"),
    *("unregister.last_reference", "unregister.size.17-nonzero", "unregister.memory_replaced"),
    *("write.equals_writev", "dynamic_events.delete_when_idle", "status.used_by_ftrace"),
    *("bpf.walk_hash_again", "bpf.helpers_together", "bpf.log_names_register.unset"),
    *("bpf.map_kept_by_program", "perf.lost", "perf.two_events"),
)
KINDS = {
    *("errno", "success", "value"),
    *("text, a byte changed", "text, the first byte changed", "text, a line missing"),
    *("text, a line twice", "text, cut short", "text, something behind it"),
    *("memory, not readable", "memory, the guard before", "memory, the guard behind"),
    *("memory, the word", "memory, inside the word"),
}
# While kernel work is pending an older answer may be right, but not one of these.
NEVER_TRUE_FOR_A_WHILE = {
    *("errno", "text, something behind it"),
    *("memory, the guard before", "memory, the guard behind"),
}
SEED = 6_12


@pytest.fixture
def exhausted(variants: list[Variant]) -> list[Variant]:
    """The programs that meet every wrong answer."""
    chosen = [variant for variant in variants if variant.id in EXHAUSTED]
    assert sorted(variant.id for variant in chosen) == sorted(EXHAUSTED)
    return chosen


@pytest.fixture
def of_each_case(variants: list[Variant]) -> list[Variant]:
    """One variant of each case, by chance."""
    dice = random.Random(SEED)
    dealt = dice.sample(variants, len(variants))
    return list({variant.case.id: variant for variant in dealt}.values())


def uncaught(variant: Variant, sample: list[Lie], *, once: bool = False) -> list[tuple[str, Lie]]:
    """Wrong answers that the lock step missed."""
    return [(variant.id, lie) for lie in sample if not tell(variant, lie, once=once).accused]


def test_every_lie_about_every_step_is_caught(
    exhausted: list[Variant], recorded: dict[str, Outcome]
) -> None:
    missed: list[tuple[str, Lie]] = []
    kinds: set[str] = set()
    for variant in exhausted:
        sample = list(lies(recorded[variant.id].lockstep.steps))
        kinds |= {lie.kind for lie in sample}
        missed += uncaught(variant, sample)
    assert missed == []
    assert kinds >= KINDS


def test_rare_lie_is_caught_in_every_case(
    of_each_case: list[Variant], recorded: dict[str, Outcome]
) -> None:
    dice = random.Random(SEED)
    missed: list[tuple[str, Lie]] = []
    for variant in of_each_case:
        sample = list(lies(recorded[variant.id].lockstep.steps))
        missed += uncaught(variant, [dice.choice(sample)])
    assert missed == []


def test_lie_is_blamed_on_its_step(exhausted: list[Variant], recorded: dict[str, Outcome]) -> None:
    dice = random.Random(SEED)
    for variant in exhausted:
        for lie in dice.sample(list(lies(recorded[variant.id].lockstep.steps)), 20):
            assert tell(variant, lie).lockstep.mismatches[0].number == lie.step


def test_corrected_lie_during_a_wait_is_caught(
    of_each_case: list[Variant], recorded: dict[str, Outcome]
) -> None:
    dice = random.Random(SEED)
    missed: list[tuple[str, Lie]] = []
    count = 0
    for variant in of_each_case:
        waited = [s for s in recorded[variant.id].lockstep.steps if s.waited_s is not None]
        sample = [lie for lie in lies(waited) if lie.kind in NEVER_TRUE_FOR_A_WHILE]
        for lie in dice.sample(sample, min(3, len(sample))):
            count += 1
            missed += uncaught(variant, [lie], once=True)
    assert count > 100
    assert missed == []


def test_honest_kernel_that_works_at_once_is_never_accused(variants: list[Variant]) -> None:
    accused = [variant.id for variant in variants if honest(variant, eager=True).accused]
    assert accused == []


def test_lie_about_a_change_ends_the_program(
    variants: list[Variant], recorded: dict[str, Outcome]
) -> None:
    variant = next(each for each in variants if each.id == "unregister.twice")
    steps = recorded[variant.id].lockstep.steps
    ioctl = next(step for step in steps if isinstance(step.operation, ops.Ioctl))
    lie = next(lie for lie in lies([ioctl]) if lie.kind == "errno")
    outcome = tell(variant, lie)
    assert isinstance(outcome.raised, Divergence)
    assert outcome.raised.step.number == ioctl.number
    assert f"allowed 'success', kernel answered '{lie.answer.errno}'" in str(outcome.raised)
    assert len(outcome.lockstep.steps) == ioctl.number


def test_all_lies_of_one_batch_are_kept(
    variants: list[Variant], recorded: dict[str, Outcome]
) -> None:
    variant = next(each for each in variants if each.id == "unregister.size.16")
    loads = [
        step for step in recorded[variant.id].lockstep.steps if isinstance(step.operation, ops.Load)
    ]
    lie = next(lie for lie in lies(loads[:1]) if lie.kind.startswith("text"))
    outcome = tell(variant, lie)
    assert [step.number for step in outcome.lockstep.mismatches] == [lie.step]
    assert len(outcome.lockstep.steps) > lie.step
