"""Benchmarks that a model writes: what it is shown, and what has to hold of what it writes."""

from __future__ import annotations

import json

import pytest

from formulacode_dagster.building.suites.patching import apply_patch
from formulacode_dagster.building.suites.questions import ReturnValue, SurveyedBenchmark
from formulacode_dagster.measuring.workloads.sides import Sides, Trial, Tried
from formulacode_dagster.measuring.workloads.written import (
    MOST_CHARACTERS,
    TRIES,
    Draft,
    changed_functions,
    fault_of,
    written_suites,
)
from formulacode_dagster.models.errors import ItemFailure, SuspectedOutage
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.models.reasons import FailureKind
from sandbox.model.rules import write_benchmark

CORE = """def total(n, start=0):
    return sum(range(n))


class Sum:
    def of(self, values):
        return sum(values)
"""
FASTER = CORE.replace("sum(range(n))", "n * (n - 1) // 2  # a closed form")
PATH = "pkg/core.py"
LINES = {PATH: frozenset({2})}
BOTH = (LINES, LINES)


class Scripted:
    """A writer of these drafts, one after the other."""

    name = "scripted"

    def __init__(self, *drafts):
        self.drafts = list(drafts)
        self.materials = []

    def draft(self, _instructions, material):
        self.materials.append(material)
        draft = self.drafts.pop(0) if self.drafts else "pass"
        if isinstance(draft, Exception):
            raise draft
        return Draft(code=draft)


def run_of(form="a", lines=LINES, index=0, size=None, method="time_total", seconds=0.01):
    return SurveyedBenchmark(
        name=f"written.Written.{method}({index if size is None else size})",
        module="written",
        owner="Written",
        attribute=method,
        index=index,
        seconds=seconds,
        timeout=1.0,
        cache_folder="",
        outcome="ran",
        lines={path: tuple(numbers) for path, numbers in lines.items()},
        returned=ReturnValue(type="str", form=form),
    )


def tried(base="a", again="a", oracle="a", lines=BOTH, index=0, **named):
    given = [(base, lines[0]), (again, lines[0]), (oracle, lines[1])]
    return Tried(*(run_of(form, of_side, index, **named) for form, of_side in given))


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        pytest.param({2}, [("total", ("n",))], id="a function"),
        pytest.param({7}, [("Sum.of", ("values",))], id="a method"),
        pytest.param({4}, [], id="between"),
        pytest.param({2, 7}, [("total", ("n",)), ("Sum.of", ("values",))], id="both"),
    ],
)
def test_functions_that_change_are_named_with_what_a_call_must_give(lines, names):
    assert [(each.name, each.arguments) for each in changed_functions(PATH, CORE.encode(), lines)] == names
    assert changed_functions(PATH, b"def (", lines) == []


@pytest.mark.parametrize(
    ("ran", "lines", "fault"),
    [
        pytest.param([tried(), tried(index=1)], BOTH, "", id="a workload"),
        pytest.param([tried(), tried(index=1, lines=({}, {}))], BOTH, "2 sizes", id="a size that does not come to it"),
        pytest.param([tried()], BOTH, "2 sizes", id="one size"),
        pytest.param([tried(size=10), tried(size=10, index=1)], BOTH, "2 sizes", id="one size twice"),
        pytest.param([tried(), tried(index=1, method="time_other")], BOTH, "2 sizes", id="one size of each method"),
        pytest.param([tried(seconds=1e-5), tried(index=1, seconds=9e-5)], BOTH, "0.1 ms", id="too short for the clock"),
        pytest.param([tried(seconds=1e-5), tried(index=1)], BOTH, "", id="short in the smaller size alone"),
        pytest.param([tried(), tried("", "", "", index=1)], BOTH, "return what it computes", id="nothing returned"),
        pytest.param([tried(), tried(again="b", index=1)], BOTH, "the same whenever", id="another result on the base"),
        pytest.param([tried(), tried(oracle="b", index=1)], BOTH, "the same whenever", id="another with the patch"),
        pytest.param([tried(lines=(LINES, {})), tried(lines=({}, LINES))], BOTH, "come to", id="aimed on one side"),
        pytest.param(
            [tried(lines=({}, LINES)), tried(lines=({}, LINES), index=1)], ({}, LINES), "", id="nothing but insertions"
        ),
    ],
)
def test_model_code_must_reach_the_change_on_both_sides_with_one_result(ran, lines, fault):
    said = fault_of(ran, lines)
    assert fault in said
    assert bool(said) is bool(fault)


@pytest.fixture
def image(image):
    """Folders here are declared to be images: only in those is a model's code run."""
    return image.model_copy(update={"engine": EngineName.DOCKER})


def test_on_the_host_no_model_is_asked(image):
    writer, notes = Scripted("x = 1"), []
    folder = image.model_copy(update={"engine": EngineName.PROCESS})
    sides = Sides(None, folder, (None, None), BOTH, "run")
    code = {PATH: CORE.encode()}
    assert list(written_suites(sides, writer, code=code, changed=LINES, commit="", note=notes.append)) == []
    assert (writer.materials, notes) == ([], ["model-written code runs only in containers"])


@pytest.fixture
def asked(image, monkeypatch):
    """The suites of *writer* where trying each of its drafts gives one of *trials*."""

    def run(writer, *trials, code=CORE, changed=LINES, others=()):
        given = list(trials)

        def trial(*_arguments, **_options):
            came = given.pop(0)
            if isinstance(came, Exception):
                raise came
            return came

        monkeypatch.setattr(Sides, "trial", trial)
        spec = image.spec.model_copy(update={"package_name": "pkg"})
        sides = Sides(None, image.model_copy(update={"spec": spec}), (None, None), BOTH, "run")
        files = {path: text.encode() for path, text in {PATH: code, **dict(others)}.items()}
        return list(written_suites(sides, writer, code=files, changed=changed, commit="b" * 40, note=run.notes.append))

    run.notes = []
    return run


GOOD = Trial([tried(), tried(index=1)], [])


def test_the_first_try_that_does_is_taken_and_marked(asked):
    writer = Scripted("x = 1", "y = 2", "z = 3")
    (suite,) = asked(writer, Trial([], ["NameError: x"]), Trial([tried()], []), GOOD)
    assert (suite.source, suite.commit) == (Source.MODEL, "b" * 40)
    assert suite.adapted == ("written.py: written by scripted",)
    assert suite.files["benchmarks/written.py"] == b"z = 3\n"
    # the error is reported, along with the text
    assert "NameError: x" in writer.materials[1]
    assert "x = 1" in writer.materials[1]
    assert "at least 2 sizes" in writer.materials[2]
    # what code of others says ends nowhere but between tags
    opened, told = writer.materials[1].rpartition("NameError: x")[::2]
    assert opened.rpartition("<")[2].startswith("fault-")
    assert told.strip() == f"</{opened.rpartition('<')[2].partition('>')[0]}>"


def test_after_three_tries_it_is_given_up(asked):
    writer = Scripted()
    timeout = ItemFailure(FailureKind.TIMEOUT, "surveying the suite took too long")
    assert asked(writer, Trial([], []), Trial([tried(oracle="b")], []), timeout, GOOD) == []
    assert len(writer.materials) == TRIES
    assert asked.notes[-1] == "it does not do: surveying the suite took too long"


@pytest.mark.parametrize("kind", ["model_answer", "model_request", "moderated"])
def test_a_model_without_an_answer_of_use_writes_none(asked, kind):
    failure = SuspectedOutage("llm", FailureKind(kind), "scripted gave no usable answer in 2 attempts")
    assert asked(Scripted("x = 1", failure), Trial([], [])) == []
    assert asked.notes[-1] == "scripted writes none: scripted gave no usable answer in 2 attempts"


def test_a_writer_that_times_out_fails_the_item(asked):
    with pytest.raises(ItemFailure, match="no answer"):
        asked(Scripted(ItemFailure(FailureKind.TIMEOUT, "no answer")))


def test_the_model_sees_the_base_and_the_names_of_what_changes_there(asked):
    writer = Scripted()
    asked(writer, *[Trial([tried(lines=({}, {}))], [])] * TRIES)
    names = json.loads(writer.materials[0].partition(">")[2].partition("</functions")[0])
    assert names == [{"module": "pkg.core", "name": "total", "arguments": ["n"]}]
    assert CORE.strip() in writer.materials[0]
    assert not any("a closed form" in material for material in writer.materials)


def test_of_large_files_the_model_sees_the_functions_that_change(asked):
    body = "".join(f"    n += {number}\n" for number in range(5_000))
    before = "".join(f"def before_{number}():\n{body}\n\n" for number in range(2))
    code = f"{before}{CORE}\n\ndef large(n):\n{body}"
    line = before.count("\n") + 1
    writer = Scripted()
    two = {PATH: {line + 1, line + 20}, "pkg/other.py": {line + 1}}
    asked(writer, *[Trial([], [])] * TRIES, code=code, changed=two, others={"pkg/other.py": code})
    material = writer.materials[0]
    assert material.count("def total(n, start=0):\n    return sum(range(n))\n") == 2, "each file has its share"
    assert "def large(n):\n    n += 0\n" in material, "each function is shown from its first line on"
    assert material.count("lines left out here]") == 5
    assert len(material) < MOST_CHARACTERS * 1.05


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        pytest.param(CORE, {PATH: {4}}, id="no function"),
        pytest.param(CORE, {"tests/test_core.py": {2}}, id="tests alone"),
        pytest.param("def (", LINES, id="cannot be read"),
    ],
)
def test_without_a_function_of_the_package_no_model_is_asked(asked, code, changed):
    writer = Scripted()
    assert asked(writer, code=code, changed=changed) == []
    assert writer.materials == []


@pytest.mark.slow
def test_what_the_sandbox_writes_runs_on_both_sides_of_a_real_change(tmp_path, git_patch, engine_of, image):
    class Sandbox:
        name = "sandbox-rules"

        def draft(self, _instructions, material):
            return Draft.model_validate_json(write_benchmark(material))

    source = tmp_path / "source"
    source.mkdir()
    patch = git_patch(source, {"pkg/__init__.py": "", PATH: CORE, "benchmarks/bench.py": ""}, {PATH: FASTER})
    engine = engine_of(source)
    with engine.session(image, run_id="run") as base, engine.session(image, run_id="run") as oracle:
        apply_patch(oracle, patch)
        sides = Sides(engine, image, (base, oracle), BOTH, "run")
        notes = []
        code = {PATH: CORE.encode()}
        (suite,) = written_suites(sides, Sandbox(), code=code, changed=LINES, commit="b" * 40, note=notes.append)
    assert suite.source is Source.MODEL
    assert notes == ["asking sandbox-rules for a benchmark, the 1. time"]
    assert b"pkg.core.total(*self.arguments)" in suite.files["benchmarks/written.py"]
