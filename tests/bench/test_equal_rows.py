from __future__ import annotations

from bench.equal_rows import checksum, differences, without

ROW = {"item": "acme/fast#1", "seconds": 3.0, "spec": {"fixes": [{"rule": "header", "run_id": "a"}]}}


def test_times_and_names_of_runs_are_left_out_at_any_depth() -> None:
    other = {**ROW, "seconds": 4.0, "spec": {"fixes": [{"rule": "header", "run_id": "b"}]}}
    assert checksum([without(ROW)]) == checksum([without(other)])
    assert without(ROW) == {"item": "acme/fast#1", "spec": {"fixes": [{"rule": "header"}]}}
    assert without(["2 benchmarks run, a.b in 0.000172 s among them"]) == ["2 benchmarks run, a.b in _ s among them"]
    assert without("3 samples") == "3 samples"


def test_a_row_that_differs_is_told_by_the_field_that_does() -> None:
    other = {**ROW, "spec": {"fixes": [{"rule": "linker", "run_id": "a"}]}}
    assert checksum([without(ROW)]) != checksum([without(other)])
    assert list(differences([ROW], [other])) == ["[0].spec.fixes[0].rule: 'header', 'linker'"]
    tagged = [{"tag": "repo:pr1", "digest": digest} for digest in "ab"]
    assert list(differences(tagged[:1], tagged[1:])) == ["[repo:pr1].digest: 'a', 'b'"]
    assert list(differences([ROW], [ROW])) == []
    assert list(differences([ROW], [])) != []
