"""Options of a run: their defaults, and those of a resumed one, with its identity."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.results.errors import ReportError
from conformance.results.journal import JournalWriter
from conformance.results.outcome import Blame, Level, Outcome
from conformance.results.replay import Journal, Running
from conformance.session.controller.resume import abandoned_cases, recall_options, require_same_run
from conformance.session.options import apply_defaults, command_words, fill_missing
from tests.report.samples import case, head

WORDS = (
    *("--kernel=6.12", "-k=write and not writev", "--tier=full", "--patch=/a b/fix.diff"),
    *("--append=a=1 b=2", "--require"),
)


def options(*words: str, resume: Path | None = None) -> Namespace:
    """The options of a command line."""
    names = (
        *("kernel", "image", "modules", "tree", "here", "ref", "abi", "flavour", "tier"),
        *("isolation", "repeat", "shuffle", "out", "exit_style", "fail_on", "ktap", "frozen"),
        "shard",
    )
    found = Namespace(**dict.fromkeys(names), keyword="", force=False, require=False)
    for name in ("patch", "config", "module", "append", "only"):
        setattr(found, name, [])
    found.resume = str(resume) if resume else None
    fill_missing(found, words)
    return found


@pytest.mark.parametrize(
    ("words", "tier"),
    [
        (["--kernel=6.12"], "quick"),
        (["--kernel=6.12", "--flavour=debug", "--config=a", "--module=b"], "quick"),
        (["--kernel=6.12", "--patch=fix.diff"], "full"),
        (["--tree=linux"], "full"),
        (["--tree=linux", "--ref=HEAD"], "full"),
        (["--image=bzImage"], "full"),
        (["--image=bzImage", "--tier=quick"], "quick"),
        (["--kernel=6.12", "--tier=full"], "full"),
        (["--kernel=6.12", "--only=write.a"], "full"),
        (["--kernel=6.12", "--frozen=0.1.0"], "quick"),
    ],
)
def test_kernel_of_the_user_gets_the_full_tier(words: list[str], tier: str) -> None:
    given = options(*words)
    apply_defaults(given)
    assert given.tier == tier


def test_command_words_are_parsed_again() -> None:
    assert command_words(options(*WORDS)) == WORDS
    settled = options(*WORDS)
    apply_defaults(settled)
    defaults = ("--isolation=need", "--exit-style=default", "--fail-on=contract")
    assert command_words(settled) == (*WORDS[:3], *defaults, *WORDS[3:])


def test_the_seed_0_is_recalled() -> None:
    assert options("--shuffle=0").shuffle == 0


def test_output_options_are_not_recorded() -> None:
    found = options(*WORDS)
    found.out, found.ktap, found.resume, found.force = "/a", "-", "/b", True
    assert command_words(found) == WORDS


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that was killed at its start."""
    directory = tmp_path / "run"
    directory.mkdir()
    with JournalWriter(directory / "journal.jsonl") as journal:
        journal.begin(head(asked=WORDS))
    return directory


def test_missing_options_are_filled(run: Path) -> None:
    given = options("--tier=quick", "--append=c=3", resume=run)
    recall_options(given)
    assert given.kernel == "6.12"
    assert given.keyword == "write and not writev"
    assert (given.tier, given.append, given.require) == ("quick", ["c=3"], True)


def test_given_kernel_replaces_the_recorded_one(run: Path) -> None:
    given = options("--image=/bzImage", resume=run)
    recall_options(given)
    assert (given.image, given.kernel) == ("/bzImage", None)


@pytest.mark.parametrize("name", ["out", "force"])
def test_run_resumes_in_its_directory(run: Path, name: str) -> None:
    given = options(resume=run)
    setattr(given, name, True)
    with pytest.raises(ReportError, match=f"--resume and --{name} exclude each other"):
        recall_options(given)


def test_run_of_the_running_kernel_is_recalled(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal.jsonl") as journal:
        journal.begin(head(asked=("--here", "--tier=full")))
    given = options(resume=tmp_path)
    recall_options(given)
    assert (given.here, given.tier, given.kernel) == (True, "full", None)


def test_empty_directory_needs_a_kernel(run: Path) -> None:
    for directory, hint in (
        (run / "new", "name the directory of a run, or a kernel to begin one there"),
        (run.parent, f"name one below it: {run.name}"),
    ):
        with pytest.raises(ReportError, match="has no run to resume") as caught:
            recall_options(options(resume=directory))
        assert caught.value.hint == hint
    recall_options(options("--kernel=6.12", resume=run.parent))


@pytest.mark.parametrize("word", ["--speed=high", "--tier=slow"])
def test_unknown_recorded_options_are_refused(tmp_path: Path, word: str) -> None:
    with JournalWriter(tmp_path / "journal.jsonl") as journal:
        journal.begin(head(asked=(word,)))
    with pytest.raises(ReportError, match=r"journal\.jsonl: line 1: "):
        recall_options(options(resume=tmp_path))


def test_same_run_is_accepted() -> None:
    was = head(asked=WORDS)
    host = {"accel": "tcg", "kernel": "another, after a reboot"}
    asked_now = (*WORDS, "--exit-style=bisect")
    require_same_run(was, replace(was, host=host, started="later", asked=asked_now), Path("run"))


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"kernel": {"release": "6.12.118"}}, "kernel release was 6.12.117 and is 6.12.118"),
        (
            {"kernel": {"config_sha256": "e" * 64}},
            "kernel config_sha256 was 5f0c5f0c5f0c… and is eeeeeeeeeeee…",
        ),
        ({"kernel": {"build": "0" * 64}}, "kernel build was None and is 0000"),
        ({"fail_on": Level.BEHAVIOUR}, "--fail-on was contract and is behaviour"),
        ({"kernel": {"profile": "6.8"}}, "kernel profile was 6.12 and is 6.8"),
        ({"asked": ("--append=nokaslr",)}, "--append was not given and is nokaslr"),
        ({"asked": ("--shuffle=7",)}, "--shuffle was not given and is 7"),
        ({"asked": ("-k=write",)}, "-k was not given and is write"),
        ({"host": {"accel": "kvm"}}, "accelerator was tcg and is kvm"),
        ({"suite": "0.2.0"}, "suite was 0.1.0 and is 0.2.0"),
        ({"suite_sha256": "0" * 64}, "suite 0.1.0 has been edited"),
    ],
)
def test_every_difference_is_named(others: dict[str, object], said: str) -> None:
    was = head()
    facts = others.pop("kernel", {})
    assert isinstance(facts, dict)
    now = replace(was, kernel=replace(was.kernel, **facts), **others)
    with pytest.raises(ReportError) as caught:
        require_same_run(was, now, Path("run"))
    assert str(caught.value).startswith("run: would resume as another run: ")
    assert said in str(caught.value)
    assert caught.value.hint.startswith("restore that, or start a new run")


def test_case_is_abandoned_after_two_deaths() -> None:
    journal = Journal()
    once, twice, ended = (Running(f"write.{name}", "full") for name in ("once", "twice", "ended"))
    journal.deaths.update([once, twice, twice, ended, ended])
    journal.results[ended.id] = case(ended.id)
    ((running, result),) = abandoned_cases(journal)
    assert running == twice
    assert (result.id, result.surface, result.tier) == ("write.twice", "write", "full")
    assert (result.outcome, result.blame) == (Outcome.ERROR, Blame.HARNESS)
    assert "run it alone: -k write.twice" in result.reason
