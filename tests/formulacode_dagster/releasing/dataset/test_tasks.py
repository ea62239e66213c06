from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import (
    Arm,
    BaseProfile,
    Measurement,
    Metric,
    Quantity,
    Returned,
    Sample,
    Source,
    Verdict,
    WorkloadProvenance,
)
from formulacode_dagster.releasing.dataset.tasks import build_task_record, patch_text
from tests.support.git_world import git, patch_between


@pytest.fixture
def parts(
    pull_request: Any,
    classification: Any,
    statement: Any,
    environment: Any,
    measurement: Any,
    correctness: Any,
    image: Any,
    published: Any,
) -> dict[str, Any]:
    return {
        "pr": pull_request,
        "patch": b"diff",
        "classification": classification,
        "statement": statement,
        "environment": environment,
        "measurement": measurement,
        "correctness": correctness,
        "image": image,
        "published": published,
    }


def test_a_published_task_is_verified_and_names_its_image(parts: dict[str, Any]) -> None:
    record = build_task_record(**parts)
    assert record.task_id == "Acme__Fast.py-7"
    assert record.container_name == f"acme-fast.py-{'b' * 40}:final"
    assert record.verified
    assert record.image_name == parts["published"].reference
    assert record.image_digest == parts["published"].digest
    assert (record.difficulty, record.classification) == ("hard", "cache_and_reuse")
    assert record.benchmarks == ("bench.time_a", "bench.time_z")
    assert record.benchmark_speedups == (1.01, 3.0)
    assert record.speedup == pytest.approx((3.0 * 1.01) ** 0.5)
    assert record.speedup_low < record.speedup < record.speedup_high
    assert record.machine == parts["measurement"].machine


def test_a_record_has_the_source_of_benchmarks_and_executed_code(parts: dict[str, Any]) -> None:
    record = build_task_record(**parts)
    assert (record.workload_source, record.workload_commit) == ("base_suite", "b" * 40)
    assert (record.workload_sha256, record.workload_adapted, record.benchmark_lines) == ("", (), ("{}", "{}"))
    assert record.workload_repository == "Acme/Fast.py"
    place = {"repository": "acme/suites", "commit": "c" * 40}
    found = WorkloadProvenance(source=Source.OWN_TESTS, sha256="d" * 64, adapted=("tests/a.py: test_z",), **place)
    executed = {"bench.time_z": {"base": {"a.py": (3, 4)}, "oracle": {"a.py": (5,)}}}
    measured = parts["measurement"].model_copy(update={"provenance": found, "executed": executed})
    record = build_task_record(**{**parts, "measurement": measured})
    assert (record.workload_source, record.workload_commit) == ("own_tests", "c" * 40)
    assert record.workload_repository == "acme/suites"
    assert (record.workload_sha256, record.workload_adapted) == ("d" * 64, ("tests/a.py: test_z",))
    assert record.benchmark_lines == ("{}", '{"base": {"a.py": [3, 4]}, "oracle": {"a.py": [5]}}')


def test_a_record_tells_what_is_better_and_what_each_benchmark_measures(parts: dict[str, Any]) -> None:
    measured = parts["measurement"]
    time, other = measured.results
    peak = other.model_copy(update={"quantity": Quantity(metric=Metric.PEAK_MEMORY, unit="bytes")})
    measured = measured.model_copy(update={"metric": Metric.PEAK_MEMORY, "results": (time, peak)})
    record = build_task_record(**{**parts, "measurement": measured})
    assert record.metric == "peakmemory"
    in_order = dict(
        zip(record.benchmarks, zip(record.benchmark_metrics, record.benchmark_units, strict=True), strict=True)
    )
    assert in_order == {time.benchmark: ("time", "seconds"), peak.benchmark: ("peakmemory", "bytes")}
    assert measured.speedup_text.endswith("× of peakmemory")


def test_a_record_has_the_hinted_statement_where_the_base_was_profiled(parts: dict[str, Any]) -> None:
    assert build_task_record(**parts).statement_hinted is None
    profile = BaseProfile(functions={}, sources={"bench.time_z": "def time_z():\n    pass\n"})
    sample = Sample(arm=Arm.BASE, round=0, order=0, value=0.5, calls=1)
    timed = tuple(result.model_copy(update={"samples": (sample,)}) for result in parts["measurement"].results)
    measured = parts["measurement"].model_copy(update={"profile": profile, "results": timed})
    hinted = build_task_record(**{**parts, "measurement": measured}).statement_hinted or ""
    assert hinted.startswith("It is slow.\n\n## What is timed")


def test_a_record_tells_how_sure_it_is_and_by_what_it_is_right(parts: dict[str, Any]) -> None:
    returned = {"bench.time_z": Returned.SAME}
    measured = parts["measurement"].model_copy(update={"returned": returned, "p_value": 0.0039})
    record = build_task_record(**{**parts, "measurement": measured})
    assert (record.p_value, record.control_speedup) == (0.0039, 1.0)
    assert (record.faster_benchmarks, record.slower_benchmarks) == (("bench.time_z",), ())
    assert record.benchmark_returns == ("not_comparable", "same")
    assert (record.pass_to_pass, record.fail_to_pass, record.flaky_tests) == (("t.py::a",), ("t.py::b",), ("t.py::c",))
    assert (record.covered_lines, record.changed_lines, record.weak_tests) == (4, 4, False)


def test_without_a_published_image_a_task_is_not_verified(parts: dict[str, Any]) -> None:
    record = build_task_record(**{**parts, "published": None})
    assert not record.verified
    assert record.image_name is None
    assert record.image_digest is None


def test_an_image_that_came_back_otherwise_is_not_verified(parts: dict[str, Any]) -> None:
    published = parts["published"].model_copy(update={"pulled_digest": "sha256:" + "9" * 64})
    assert not build_task_record(**{**parts, "published": published}).verified


def test_a_task_that_a_model_wrote_the_benchmark_of_is_not_verified(parts: dict[str, Any]) -> None:
    measured = parts["measurement"].model_copy(update={"provenance": WorkloadProvenance(source=Source.MODEL)})
    record = build_task_record(**{**parts, "measurement": measured})
    assert (record.verified, record.workload_source) == (False, "model")
    assert record.image_digest == parts["published"].digest


def test_a_pull_request_that_is_not_faster_is_no_task(parts: dict[str, Any]) -> None:
    slow: Measurement = parts["measurement"].model_copy(update={"verdict": Verdict.TRADE_OFF})
    with pytest.raises(ItemFailure, match="not a task: it was measured to be trade-off") as caught:
        build_task_record(**{**parts, "measurement": slow})
    assert caught.value.kind == "not_a_task"


@pytest.mark.parametrize(
    "part", ["classification", "statement", "environment", "measurement", "correctness", "image", "published"]
)
def test_a_part_of_another_pull_request_is_refused(parts: dict[str, Any], part: str) -> None:
    with pytest.raises(ItemFailure, match="another pull request"):
        build_task_record(**{**parts, part: parts[part].model_copy(update={"number": 8})})


@pytest.mark.parametrize(
    ("part", "field"), [("published", "image_digest"), ("image", "digest"), ("correctness", "image_digest")]
)
def test_an_image_that_was_not_measured_is_refused(parts: dict[str, Any], part: str, field: str) -> None:
    with pytest.raises(ItemFailure, match="the measured image is not the released one"):
        build_task_record(**{**parts, part: parts[part].model_copy(update={field: "sha256:" + "9" * 64})})


def test_a_winner_without_a_result_is_refused(parts: dict[str, Any]) -> None:
    odd = parts["measurement"].model_copy(update={"faster": ("bench.gone",)})
    with pytest.raises(ItemFailure, match=r"bench\.gone"):
        build_task_record(**{**parts, "measurement": odd})


@pytest.mark.parametrize(
    ("before", "after", "encoding"),
    [
        ("naïve = 1\r\n".encode(), "naïve = 2\r\n".encode(), "utf-8"),
        ("naïve = 1\n".encode("latin-1"), "naïve = 2\n".encode("latin-1"), "latin-1"),
        (b"\x00\x01\xff" * 9, b"\x00\x02\xff" * 9, "utf-8"),
    ],
)
def test_the_text_of_a_patch_applies(tmp_path: Path, before: bytes, after: bytes, encoding: str) -> None:
    text, found = patch_text(patch_between(tmp_path / "patch.git", {"f": before}, {"f": after}))
    assert found == encoding
    (tmp_path / "f").write_bytes(before)
    git(tmp_path, "-c", "core.autocrlf=false", "apply", stdin=text.encode(found))
    assert (tmp_path / "f").read_bytes() == after
