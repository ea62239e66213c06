from __future__ import annotations

import sys
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.sources.git.command import GitError, git
from formulacode_dagster.sources.git.faults import Fault, fault_of, refused_object, translate

WORDS = {
    "fatal: write error: No space left on device": Fault.DISK,
    "remote: Repository not found.\nfatal: repository 'https://host/a/b.git/' not found": Fault.VANISHED,
    "fatal: could not read Username for 'https://host': terminal prompts disabled": Fault.VANISHED,
    "fatal: unable to access 'https://host/a/b.git/': The requested URL returned error: 451": Fault.VANISHED,
    "fatal: unable to access 'https://host/a/b.git/': Could not resolve host: host": Fault.HOST,
    "fatal: unable to access 'http://host/a.git/': Failed to connect to host port 80": Fault.HOST,
    "fatal: unable to access 'https://host/a/b.git/': The requested URL returned error: 502": Fault.PASSING,
    "fatal: unable to access 'https://host/a/b.git/': The requested URL returned error: 429": Fault.PASSING,
    "fatal: unable to access 'https://host/a/b.git/': Error in the HTTP2 framing layer": Fault.PASSING,
    "fatal: unable to access 'https://host/a/b.git/': Empty reply from server": Fault.PASSING,
    "fatal: unable to access 'https://host/a/b.git/': The requested URL returned error: 403": Fault.PASSING,
    "error: RPC failed; curl 56 Recv failure: Connection reset by peer\nfatal: early EOF": Fault.PASSING,
    "fatal: remote error: upload-pack: not our ref " + "1" * 40: Fault.REFUSED_OBJECT,
    "fatal: couldn't find remote ref refs/pull/9/head": Fault.REFUSED_OBJECT,
    "error: inflate: data stream error (incorrect data check)": Fault.BROKEN,
    "fatal: loose object 12 (stored in objects/1/2) is corrupt": Fault.BROKEN,
    "error: unknown object type 0 at offset 12 in ./objects/pack/pack-1.pack": Fault.BROKEN,
    "fatal: something new": Fault.OTHER,
}


@pytest.mark.parametrize(("words", "fault"), WORDS.items())
def test_git_s_words_are_understood(words, fault):
    assert fault_of(GitError(("fetch",), 128, words)) is fault


def test_the_refused_object_is_named():
    error = GitError(("fetch",), 128, "fatal: couldn't find remote ref refs/pull/9/head")
    assert refused_object(error) == "refs/pull/9/head"


@pytest.mark.parametrize(("words", "fault"), WORDS.items())
def test_only_a_dead_host_or_disk_stops_the_stage(words, fault):
    error = translate(GitError(("fetch",), 128, words), "fetch", "a/b")
    stops = fault in (Fault.DISK, Fault.HOST)
    assert isinstance(error, OutsideSystemError if stops else ItemFailure)
    assert "a/b" in str(error)
    # may be the host's: three unlike repositories stop the stage
    assert isinstance(error, SuspectedOutage) is (fault in (Fault.PASSING, Fault.VANISHED))


@pytest.mark.slow
def test_a_git_that_hangs_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    fake = tmp_path / "git"
    fake.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin:{Path(sys.executable).parent}")
    with pytest.raises(GitError) as caught:
        git(None, "version", seconds=3)
    assert fault_of(caught.value) is Fault.TIMEOUT
    assert isinstance(translate(caught.value, "fetch", "a/b"), ItemFailure)
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    # it may be a zombie for a moment
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"
