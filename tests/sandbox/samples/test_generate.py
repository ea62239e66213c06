from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.pull_request import MergeKind
from formulacode_dagster.sources.offline.side_file import SIDE_FILE, SideFile
from sandbox.samples import GeneratedPullRequest, SampleSet, generate
from sandbox.samples.catalog import catalog, people, repositories
from sandbox.samples.fast_import import write_repository
from sandbox.samples.history import history_of
from tests.support.samples import pull_request_of

HEADS = {
    "dmoreau/gridpath": "736c20669fd4bedc9201f955220fcb6e892338ba",
    "loomworks/wordloom": "a95210c4515d06b8e95a829defc1e6a472e8e1b2",
    "numeric-samples/tilemath": "c64b97201577a64fbe3f20a00b746fba73d51135",
    "sample-org/gridpath": "3798cf5f154e928a994feff1cef60852c0221497",
    "sample-org/pairheap": "55a15ecfbbaab141fd82649bd9e39dd73b5f86ec",
    "signal-kit/rollwin": "66f32a9ca5cc475cf79c76845f4bfec76338184a",
}
MERGES_SHA256 = "dff1dcdb0004c31fe55a38b7fb82e57f30aeeff6fabccac5b5efce5eee074221"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_shas_never_change(samples: SampleSet) -> None:
    assert samples.heads == HEADS
    merges = "".join(f"{pull_request.item} {pull_request.merge_commit_sha}\n" for pull_request in samples.pull_requests)
    assert hashlib.sha256(merges.encode()).hexdigest() == MERGES_SHA256


@pytest.mark.slow
def test_neither_configuration_nor_environment_has_a_part_in_the_shas(
    samples: SampleSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(
        "[user]\n name = Somebody\n email = s@else.example\n[commit]\n gpgSign = true\n[init]\n defaultBranch = trunk\n"
        "[core]\n autocrlf = true\n fileMode = false\n[i18n]\n commitEncoding = latin-1\n"
    )
    odd = {"HOME": str(tmp_path), "GIT_DIR": "/nonexistent", "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z"}
    odd |= {"GIT_COMMITTER_NAME": "Nobody", "GIT_DEFAULT_HASH": "sha256", "TZ": "Asia/Tokyo", "LC_ALL": "tr_TR.UTF-8"}
    for name, value in odd.items():
        monkeypatch.setenv(name, value)
    time.tzset()
    before = os.umask(0o077)
    try:
        assert generate(tmp_path / "samples").pull_requests == samples.pull_requests
    finally:
        os.umask(before)
        monkeypatch.undo()
        time.tzset()


def processor_seconds() -> float:
    """CPU time of this process and of its ended children, independent of other load."""
    return sum(os.times()[:4])


@pytest.mark.slow
def test_generating_takes_under_three_seconds_and_nothing_again(tmp_path: Path) -> None:
    start = processor_seconds()
    first = generate(tmp_path / "samples")
    middle = processor_seconds()
    before = snapshot(tmp_path / "samples")
    start_again = processor_seconds()
    again = generate(tmp_path / "samples")
    end = processor_seconds()
    assert again == first
    assert snapshot(tmp_path / "samples") == before
    assert middle - start < 3
    assert end - start_again < 0.1


@pytest.mark.slow
def test_base_plus_patch_is_the_tree_after_the_merge(
    samples: SampleSet, git: Callable[..., bytes], patch_of: Callable[[GeneratedPullRequest], bytes], tmp_path: Path
) -> None:
    for pull_request in samples.pull_requests:
        repository = pull_request.item.partition("#")[0]
        environment = {
            **os.environ,
            "GIT_DIR": str(samples.repository(repository)),
            "GIT_INDEX_FILE": str(tmp_path / "i"),
        }

        def run(*arguments: str, stdin: bytes = b"", environment: dict[str, str] = environment) -> str:
            done = subprocess.run(["git", *arguments], env=environment, input=stdin, capture_output=True, check=True)
            return done.stdout.decode().strip()

        run("read-tree", pull_request.base_sha)
        run("apply", "--cached", "--whitespace=nowarn", stdin=patch_of(pull_request))
        assert run("write-tree") == run("rev-parse", f"{pull_request.merge_commit_sha}^{{tree}}"), pull_request.item


def test_each_kind_of_merge_has_its_shape(samples: SampleSet, git: Callable[..., bytes]) -> None:
    for definition in catalog():
        one = pull_request_of(samples, definition.item)
        parents = git(definition.repository, "rev-parse", f"{one.merge_commit_sha}^@").decode().split()
        between = int(git(definition.repository, "rev-list", "--count", f"{one.base_sha}..{one.merge_commit_sha}"))
        head = git(definition.repository, "rev-parse", f"refs/pull/{definition.number}/head").decode().strip()
        assert head == one.head_sha
        match one.merge_kind:
            case MergeKind.MERGE:
                assert parents == [one.base_sha, one.head_sha]
            case MergeKind.SQUASH:
                assert (parents, between) == ([one.base_sha], 1)
            case MergeKind.REBASE:
                assert len(parents) == 1
                assert between == len(definition.commits) > 1


def test_some_branches_started_from_an_older_commit_than_they_were_put_on(
    samples: SampleSet, git: Callable[..., bytes]
) -> None:
    older = 0
    for pull_request in samples.pull_requests:
        shas = (pull_request.base_sha, pull_request.head_sha)
        older += git(pull_request.item.partition("#")[0], "merge-base", *shas).decode().strip() != pull_request.base_sha
    assert older >= 3


def test_the_default_branch_only_goes_forward_in_time(samples: SampleSet, git: Callable[..., bytes]) -> None:
    for name in samples.heads:
        dates = [int(line) for line in git(name, "log", "--first-parent", "--format=%ct", "HEAD").split()]
        assert dates == sorted(dates, reverse=True)


def test_the_patches_hold_what_is_awkward(
    samples: SampleSet, patch_of: Callable[[GeneratedPullRequest], bytes]
) -> None:
    patches = {pull_request.item: patch_of(pull_request) for pull_request in samples.pull_requests}
    assert b"GIT binary patch" in patches["numeric-samples/tilemath#7"]
    assert b"rename from src/gridpath/ordering.py" in patches["sample-org/gridpath#13"]
    assert len(patches["numeric-samples/tilemath#5"]) > 2_000_000
    with pytest.raises(UnicodeDecodeError):
        patches["loomworks/wordloom#10"].decode()


def test_the_side_file_tells_what_the_repositories_cannot(samples: SampleSet) -> None:
    side_file = SideFile.read(samples.folder)
    assert set(side_file.repositories) == set(samples.heads)
    wordloom = side_file.repositories["loomworks/wordloom"]
    assert wordloom.former_names == ("rpatel/loom", "loomworks/loom")
    assert side_file.repositories["dmoreau/gridpath"].is_fork
    assert side_file.repositories["sample-org/pairheap"].is_archived
    (similarity,) = (pull_request for pull_request in wordloom.pull_requests if pull_request.number == 15)
    assert similarity.closes == (14,)
    assert similarity.merge_commit_sha == pull_request_of(samples, "loomworks/wordloom#15").merge_commit_sha
    assert len(
        [pull_request for repository in side_file.repositories.values() for pull_request in repository.pull_requests]
    ) == len(catalog())


def test_the_fork_shares_its_history_with_the_original(samples: SampleSet, git: Callable[..., bytes]) -> None:
    shared = pull_request_of(samples, "sample-org/gridpath#6").merge_commit_sha
    git("dmoreau/gridpath", "merge-base", "--is-ancestor", shared, "HEAD")
    refs = git("dmoreau/gridpath", "for-each-ref", "--format=%(refname)", "refs/pull").decode().split()
    assert refs == ["refs/pull/1/head"]


def test_the_repositories_are_sound_and_can_be_cloned_and_fetched_from(
    samples: SampleSet, git: Callable[..., bytes], tmp_path: Path
) -> None:
    for name in samples.heads:
        git(name, "fsck", "--strict")
    source = samples.repository("loomworks/wordloom").as_uri()
    command = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", source, str(tmp_path / "clone")]
    subprocess.run(command, check=True, capture_output=True)
    head = pull_request_of(samples, "loomworks/wordloom#15").head_sha
    subprocess.run(["git", "-C", str(tmp_path / "clone"), "fetch", "--quiet", source, head], check=True)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work")
    with pytest.raises(ConfigurationError, match="contains something other than samples"):
        generate(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_samples_of_other_definitions_or_incomplete_ones_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    made = generate(folder)
    (folder / "samples.json").write_text(made.model_copy(update={"made_from": "others"}).model_dump_json())
    (folder / "left-over").write_text("")
    assert generate(folder) == made
    assert not (folder / "left-over").exists()
    (made.repository("signal-kit/rollwin") / "HEAD").unlink()
    assert generate(folder) == made
    assert (made.repository("signal-kit/rollwin") / "HEAD").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".samples.lock", "samples"]


def test_what_a_killed_run_left_behind_does_no_harm(tmp_path: Path) -> None:
    scratch = tmp_path / ".samples.part" / "made" / "sample-org" / "gridpath.git"
    scratch.mkdir(parents=True)
    (scratch / "HEAD").write_text("half a repo")
    assert (generate(tmp_path / "samples").folder / SIDE_FILE).exists()
    assert not (tmp_path / ".samples.part").exists()


def test_a_failure_of_git_leaves_no_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "git").write_text("#!/bin/sh\necho 'fatal: no space left on device' >&2\nexit 128\n")
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(OutsideSystemError, match="no space left on device"):
        generate(tmp_path / "samples")
    assert not (tmp_path / "samples").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="git is not on PATH"):
        write_repository(tmp_path / "one.git", history_of(repositories()[-1], people()), default_branch="main")
