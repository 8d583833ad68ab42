"""Select and order the cases of a session, while pytest collects."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression
from _pytest.mark.structures import ParameterSet, get_unpacked_marks

import conformance.cases
from conformance.cases.case import FULL_MARK, VARIANTS_MARK, Case, Tier, declared
from conformance.client.user_events import UserEvents
from conformance.results.exit_codes import Ending
from conformance.results.frozen import FrozenList
from conformance.results.run import Functions
from conformance.results.shard import Shard
from conformance.runner.switch_probes import Probe
from conformance.session.ending import nothing_selected, refuse
from conformance.session.ordering import CaseHistory, ordered
from conformance.session.shards import shard
from conformance.session.target.target import Target
from host.text import closest, cut
from kernels.errors import UserMistake

# Characters of an expression in a message.
_SHOWN = 60
# The directory of the cases.
CASES = Path(conformance.cases.__file__).resolve().parent


def case_of(item: pytest.Item) -> Case | None:
    """The case an item runs, None for an ordinary test."""
    return declared(getattr(item, "function", None))


def case_and_id(item: pytest.Item) -> tuple[Case, str]:
    """The case of an item, and its id."""
    case = case_of(item)
    assert case is not None
    return case, case_id(case, item)


def case_id(case: Case, item: pytest.Item) -> str:
    """The id of a case and its variant."""
    callspec = getattr(item, "callspec", None)
    return case.id if callspec is None else f"{case.id}.{callspec.id}"


def tier_of(case: Case, item: pytest.Item) -> Tier:
    """The tier of a variant: full if it is marked so, else that of its case."""
    return Tier.FULL if item.get_closest_marker(FULL_MARK.name) else case.tier


def frozen_list(config: pytest.Config) -> FrozenList | None:
    """The list of --frozen.  Raises ReportError."""
    name = config.option.frozen
    return None if name is None else FrozenList.read(Path(name))


def named_ids(config: pytest.Config) -> frozenset[str] | None:
    """The ids that --only and --frozen leave, None for all.  Raises ReportError."""
    listed = frozen_list(config)
    named = frozenset(config.option.only)
    if listed is None:
        return named or None
    ids = frozenset(listed.programs)
    return ids & named if named else ids


class CaseSelection:
    """Plugin that selects and orders the cases of a session.

    ``probes`` are the programs of all cases about a switch, ``switches`` those with a selected
    case.
    """

    def __init__(
        self,
        target: Target,
        history: CaseHistory,
        on_selected: Callable[[int, Sequence[str], Functions, Shard | None], None],
    ) -> None:
        """``on_selected`` gets the number of cases to run, the files that were not collected,
        the functions that apply, and the shard.
        """
        self._target = target
        self._earlier = history
        self._on_selected = on_selected
        # For each function that was collected the ids of its variants, none if it does not apply.
        self._variants: list[list[str]] = []
        # The ids of collected functions that do not apply.
        self._inapplicable: set[str] = set()
        # The files that were collected.
        self._files: set[str] = set()
        self.probes: list[Probe] = []
        self.switches: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, obj: object
    ) -> list[pytest.Item] | None:
        """Skip cases that do not run: to create an item takes time.

        A case about a switch is kept in every tier, for its probe.
        """
        case = declared(obj)
        if case is None:
            return None
        self._files.add(str(collector.path))
        option = collector.config.option
        if not case.applies(self._target.profile):
            self._inapplicable.add(case.id)
            self._variants.append([])
            return []
        ids = _ids_of(case, obj)
        self._variants.append(ids)
        of_tier = Tier(option.tier) is Tier.FULL or case.tier is Tier.QUICK
        wanted, named = expression(option.keyword), option.only or None
        if case.switch or (of_tier and any(_is_named(id, wanted, named) for id in ids)):
            return None
        return []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Create the variants of a case that belong to the tier."""
        quick = Tier(metafunc.config.option.tier) is Tier.QUICK
        for mark in metafunc.definition.iter_markers(VARIANTS_MARK.name):
            names, rows = mark.args
            metafunc.parametrize(names, [row for row in rows if not (quick and _is_full_row(row))])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the cases that apply to the kernel and match -k and --tier."""
        wanted = expression(config.option.keyword)
        named = named_ids(config)
        tier = Tier(config.option.tier)
        cases = [item for item in items if case_of(item) is not None]
        kept = [item for item in cases if self._selects(item, tier, wanted, named)]
        self._require_known(config, wanted, {case_and_id(item)[1] for item in cases})
        if self._variants and not kept:
            why = nothing_selected(config, self._target.profile.name)
            refuse(config, why, self._without_cases(wanted))
        # pytest itself would match file and function names.
        config.option.keyword = ""
        self.probes = _probes(cases)
        # The case about a switch may be in another shard.
        self.switches = {case_and_id(item)[0].switch for item in kept}
        part = _shard(config, kept)
        if part is not None:
            ids = frozenset(part.cases)
            kept = [item for item in kept if case_and_id(item)[1] in ids]
        remaining = set(kept)
        if dropped := [item for item in cases if item not in remaining]:
            config.hook.pytest_deselected(items=dropped)
        others = [item for item in items if case_of(item) is None]
        left = ordered(kept, case_and_id, self._earlier, config.option.shuffle)
        # Cases that ended before the run was resumed do not count as missing.
        lost = sorted(Path(path).name for path in _files(config) - self._files)
        applying = [ids for ids in self._variants if ids]
        matching = sum(matches(wanted, id) for ids in applying for id in ids)
        functions = Functions(len(applying), len(self._variants), matching)
        self._on_selected(len(left), lost, functions, part)
        items[:] = others + left

    def _without_cases(self, wanted: Expression | None) -> Ending:
        """The ending of a run without a case: whether -k matches only those of other kernels."""
        applying = any(matches(wanted, id) for ids in self._variants for id in ids)
        others = any(matches(wanted, id) for id in self._inapplicable)
        return Ending.NOT_APPLICABLE if others and not applying else Ending.USAGE

    def _require_known(
        self, config: pytest.Config, wanted: Expression | None, ids: set[str]
    ) -> None:
        """Refuse --only with an id that no case has, or with none that applies."""
        # A case that -k leaves out is known, too.
        known = ids.union(*self._variants)
        named: list[str] = config.option.only
        unknown = {id for id in named if matches(wanted, id) or id not in known} - ids
        inapplicable = {id for id in unknown if self._inapplicable & {id, id.rpartition(".")[0]}}
        profile = self._target.profile.name
        if wrong := sorted(unknown - inapplicable):
            likely = closest(wrong[0], itertools.chain(*self._variants))
            meant = f"; did you mean {likely}?" if likely else "; uevt cases lists them"
            refuse(config, f"--only: tier {config.option.tier} has no case {wrong[0]!r}{meant}")
        if inapplicable and inapplicable == set(named):
            what = f"--only: {min(inapplicable)} does not apply to profile {profile}"
            refuse(config, what, Ending.NOT_APPLICABLE)

    def _selects(
        self, item: pytest.Item, tier: Tier, wanted: Expression | None, named: frozenset[str] | None
    ) -> bool:
        case, id = case_and_id(item)
        if tier_of(case, item) is Tier.FULL and tier is Tier.QUICK:
            return False
        return _is_named(id, wanted, named)


def _shard(config: pytest.Config, items: Sequence[pytest.Item]) -> Shard | None:
    """The shard of --shard, None without it."""
    part = config.option.shard
    if part is None:
        return None
    try:
        return shard(part, [case_and_id(item)[1] for item in items])
    except UserMistake as error:
        refuse(config, error.with_hint)


def _ids_of(case: Case, function: object) -> list[str]:
    """The ids of the cases of both tiers that a function makes."""
    marks = [each for each in get_unpacked_marks(function) if each.name == VARIANTS_MARK.name]
    if not marks:
        return [case.id]
    tables = [[row.id for row in each.args[1]] for each in marks]
    return [f"{case.id}.{'-'.join(rows)}" for rows in itertools.product(*tables)]


def _is_full_row(row: ParameterSet) -> bool:
    """Whether a row of a table is of tier full."""
    return any(mark.name == FULL_MARK.name for mark in row.marks)


def _probes(items: list[pytest.Item]) -> list[Probe]:
    found: dict[str, Probe] = {}
    for item in items:
        case = case_of(item)
        if case is not None and case.switch and case.switch not in found:
            found[case.switch] = Probe(case, _program(item))
    return list(found.values())


def _program(item: pytest.Item) -> Callable[[UserEvents], None]:
    """The function of a case, with the arguments of the variant."""
    assert isinstance(item, pytest.Function)
    arguments = item.callspec.params if hasattr(item, "callspec") else {}
    return functools.partial(item.function, **arguments)


def _files(config: pytest.Config) -> frozenset[str]:
    """All case files; none if single files were named on the command line."""
    given = {(config.invocation_params.dir / arg).resolve() for arg in config.args}
    if not given & {CASES, CASES.parent}:
        return frozenset()
    return frozenset(map(str, CASES.rglob("test_*.py")))


def _is_named(id: str, wanted: Expression | None, named: Collection[str] | None) -> bool:
    """Whether an expression of -k and a list of ids select an id, as far as they are given."""
    return matches(wanted, id) and (named is None or id in named)


def matches(wanted: Expression | None, id: str) -> bool:
    """Whether an expression of -k, if there is one, selects the id of a case."""

    def is_part(name: str, /, **_: str | int | bool | None) -> bool:
        """Whether a word of -k is a part of the id: nothing else of an item counts."""
        return name.lower() in id

    return wanted is None or wanted.evaluate(is_part)


@functools.cache
def expression(keyword: str) -> Expression | None:
    """The expression of -k, or None.  Raises UserMistake."""
    try:
        return Expression.compile(keyword) if keyword else None
    except (SyntaxError, RecursionError, MemoryError) as error:
        what = f"-k {cut(keyword, _SHOWN)!r} is no expression: {error}"
        raise UserMistake(what, "write words with and, or, not") from error
