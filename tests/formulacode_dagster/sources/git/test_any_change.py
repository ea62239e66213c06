"""Any pull request, however it landed: base + patch = merge tree, for us and in any clone."""

from __future__ import annotations

import os
import tempfile
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.pull_request import MergedPullRequest, MergeKind
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import Mirror
from tests.records import make_merged
from tests.support.git_world import FILE, LINK, MODULE, PROGRAM, BareRepository

MONTH = 1_770_000_000
NAMES = [
    b"a.py",
    b"A.py",
    b"dir/a.py",
    b"dir/deep/er/b.txt",
    b"dir",
    b'quo"te.py',
    b"tab\tname",
    b"new\nline",
    b" leading and trailing ",
    b"back\\slash",
    b"-dash",
    b"caf\xe9.txt",
    "größe/日本.py".encode(),
    b"a/b",
    b"dev/null",
    b"*.glob[a]?",
    b".gitmodules",
    b".gitattributes",
    b"dir/.gitattributes",
]
ATTRIBUTES = [
    b"* text=auto eol=crlf\n",
    b"* -diff -text ident export-subst\n*.py binary\n",
    b"* working-tree-encoding=UTF-16LE filter=lfs diff=python merge=union whitespace=tab-in-indent\n",
    b'* !diff text eol=lf export-ignore\n"caf\\351.txt" -crlf',
    b"[attr]all -diff -merge\n* all\n",
]
LINES = [
    b"one\n",
    b"two\r\n",
    b"  three \t\n",
    b"$Id$\n",
    b"\n",
    b"na\xefve \xff\n",
    b"-- \n",
    b"+++ b/x\n",
    b"lone\rcr\n",
]

text = st.lists(st.sampled_from(LINES), max_size=12).map(b"".join)
contents = st.one_of(
    text,
    text.map(bytes.rstrip),
    st.binary(max_size=60),
    st.sampled_from(ATTRIBUTES),
    st.sampled_from([b"", b"\0", b"\0binary\0" * 400, b"x" * 70_000, b"line\n" * 3000]),
)
entries = st.one_of(
    st.tuples(st.sampled_from([FILE, FILE, PROGRAM]), contents),
    st.tuples(st.just(LINK), st.sampled_from([b"a.py", b"../outside", b"caf\xe9", b"no newline\nat all"])),
    st.tuples(st.just(MODULE), st.sampled_from([b"1" * 40, b"2" * 40])),
)
Tree = dict[bytes, tuple[str, bytes]]


def without_conflicts(tree: Tree) -> Tree:
    """*tree* without files that would be inside a file, or that git never writes."""
    kept: Tree = {}
    for path in sorted(tree):
        if path == b".gitmodules" and tree[path][0] == LINK:
            continue
        parents = [b"/".join(path.split(b"/")[:depth]) for depth in range(1, path.count(b"/") + 1)]
        if not any(parent in kept for parent in parents):
            kept[path] = tree[path]
    return kept


trees = st.dictionaries(st.sampled_from(NAMES), entries, max_size=8).map(without_conflicts)


@st.composite
def branches(draw) -> list[Tree]:
    """The tree from which a branch starts, and those of its commits; each differs from the one before."""
    states = [draw(trees)]
    for _ in range(draw(st.integers(1, 3))):
        tree = dict(states[-1])
        for path, entry in draw(st.dictionaries(st.sampled_from(NAMES), st.none() | entries, max_size=4)).items():
            tree.pop(path, None)
            if entry is not None:
                tree[path] = entry
        renamed = draw(st.none() | st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)))
        if renamed and renamed[0] in tree:
            tree[renamed[1]] = tree.pop(renamed[0])
        tree = without_conflicts(tree)
        assume(tree != states[-1])
        states.append(tree)
    return states


class History(BareRepository):
    """Whole trees, commit by commit, an hour apart; each is on a branch of its own."""

    def snapshot(self, tree: Tree, parents: list[int], message: str, *, who: str = "Bob", moment: int = 0) -> int:
        made = self.count + 1
        authored, committed = MONTH + (moment or made) * 3600, MONTH + made * 3600
        people = {"author": f"{who} <{who}@x.org>", "committer": "Web <web@x.org>"}
        self.commit(message, committed, *parents, files=tree, authored=authored, whole=True, **people)
        self.ref(f"refs/heads/c{made}", made)
        return made

    def applied(self, base: str, patch: bytes) -> str:
        """The tree that a person gets, whose git knows the attributes of the tree."""
        index = {"GIT_INDEX_FILE": str(self.path / "an-index")}
        self.git("read-tree", base, **index)
        self.git("apply", "--cached", "--whitespace=nowarn", stdin=patch, **index)
        return self.git("write-tree", **index)


@dataclass(frozen=True)
class Landing:
    """A branch that was merged in one of the ways there are."""

    folder: Path
    history: History
    shas: dict[int, str]
    facts: MergedPullRequest
    base: str
    merge: str


def land(folder: Path, states: list[Tree], way: str, *, head_known: bool = True) -> Landing:
    history = History(folder)
    elsewhere = {b"zz-main/other.py": (FILE, b"meanwhile\n")}
    start = history.snapshot(states[0], [], "Start")
    # a head that is not known lies in a fork, of which nothing is here
    head = start
    for number, state in enumerate(states[1:], 1):
        head = history.snapshot(state, [head], f"Step {number}", moment=number)
    base = history.snapshot(states[0] | elsewhere, [start], "Meanwhile", who="Ann")
    landed = states[-1] | elsewhere
    if way == "merge":
        merge = history.snapshot(landed, [base, head], "Fix the title (#7)", who="Ann")
    elif way == "octopus":
        other = history.snapshot(states[0], [start], "Other", who="Cleo")
        merge = history.snapshot(landed, [base, head, other], "Merge two", who="Ann")
    elif way == "squash":
        merge = history.snapshot(landed, [base], "Merge pull request #7 from nobody/nothing")
    else:
        merge = base
        for number, state in enumerate(states[1:], 1):
            merge = history.snapshot(state | elsewhere, [merge], f"Step {number}", moment=number)
    shas = history.write()
    changed = history.git("diff-tree", "-r", "-M", "--name-only", "-z", shas[start], shas[head]).count("\0")
    facts = make_merged(
        repository="demo/any",
        number=7,
        head_sha=shas[head] if head_known else "0" * 40,
        merge_commit_sha=shas[merge],
        commit_count=len(states) - 1,
        changed_files=changed,
    )
    return Landing(folder, history, shas, facts, shas[base], shas[merge])


EXPECTED = {
    "merge": MergeKind.MERGE,
    "octopus": MergeKind.MERGE,
    "squash": MergeKind.SQUASH,
    "rebase": MergeKind.REBASE,
}


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("FC_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(states=branches(), way=st.sampled_from(sorted(EXPECTED)))
@example(states=[{b"a.py": (FILE, b"x")}, {b"A.py": (FILE, b"x")}], way="squash")
@example(states=[{b"a.py": (FILE, b"x\n")}, {b"a.py": (LINK, b"x\n")}], way="merge")
@example(states=[{b"a": (LINK, b"b")}, {b"a/b": (FILE, b"b")}, {b"a": (MODULE, b"1" * 40)}], way="rebase")
@example(states=[{}, {b"empty": (FILE, b"")}, {b"empty": (PROGRAM, b"")}], way="rebase")
@example(states=[{b"m": (MODULE, b"1" * 40)}, {b"n": (MODULE, b"1" * 40)}, {}], way="merge")
def test_base_and_patch_give_the_merged_tree_and_the_kind_is_told(states, way):
    with tempfile.TemporaryDirectory() as folder:
        landing = land(Path(folder) / "any.git", states, way)
        with Mirror("demo/any", landing.folder) as mirror:
            if states[0] == states[-1]:
                with pytest.raises(Rejection) as caught:
                    change_of(mirror, landing.facts)
                assert caught.value.reason is RejectionReason.NO_PATCH
                return
            change, patch = change_of(mirror, landing.facts)
        tree = landing.history.git("rev-parse", f"{landing.merge}^{{tree}}")
        assert (change.base_sha, change.merge_tree_sha) == (landing.base, tree)
        assert landing.history.applied(change.base_sha, patch) == tree
        expected = MergeKind.SQUASH if way == "rebase" and len(states) == 2 else EXPECTED[way]
        assert change.merge_kind is expected
        before, after = states[0], states[-1]
        assert len(change.files) == len([path for path in before | after if before.get(path) != after.get(path)])
        change.model_dump_json()


def test_the_first_commit_of_a_history_has_no_base(tmp_path):
    history = History(tmp_path / "any.git")
    mark = history.snapshot({b"a.py": (FILE, b"x\n")}, [], "Root")
    sha = history.write()[mark]
    facts = land(tmp_path / "other.git", [{}, {b"b": (FILE, b"")}], "squash").facts
    with Mirror("demo/any", history.path) as mirror, pytest.raises(ItemFailure) as caught:
        change_of(mirror, facts.model_copy(update={"merge_commit_sha": sha, "head_sha": "0" * 40}))
    assert caught.value.kind == "no_base"


def test_what_git_refuses_to_write_is_a_failure_of_its_own(tmp_path):
    landing = land(tmp_path / "any.git", [{}, {b".gitmodules": (LINK, b"/etc/passwd")}], "squash")
    with Mirror("demo/any", landing.folder) as mirror, pytest.raises(ItemFailure, match="invalid path") as caught:
        change_of(mirror, landing.facts)
    assert caught.value.kind == "unsafe_path"


@pytest.mark.slow
def test_an_oversized_patch_is_rejected_within_the_memory_limit(tmp_path):
    landing = land(tmp_path / "any.git", [{}, {b"big.bin": (FILE, os.urandom(8 << 20))}], "squash")
    with Mirror("demo/any", landing.folder) as mirror:
        tracemalloc.start()
        with pytest.raises(Rejection, match="over 3 MiB") as caught:
            change_of(mirror, landing.facts, most_bytes=3 << 20)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert caught.value.reason is RejectionReason.PATCH_TOO_LARGE
    assert most < 10 << 20


@pytest.mark.slow
def test_a_change_of_more_than_3_000_files_is_whole(tmp_path):
    after = {b"many/%d.txt" % number: (FILE, b"%d\n" % number) for number in range(3_100)}
    landing = land(tmp_path / "any.git", [{}, after], "squash")
    with Mirror("demo/any", landing.folder) as mirror:
        change, patch = change_of(mirror, landing.facts)
    assert len(change.files) == 3_100
    assert landing.history.applied(change.base_sha, patch) == change.merge_tree_sha
