"""Statements with a writer and judges, which answer from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import LinkedIssue, PullRequest
from formulacode_dagster.selection.statements.judging import (
    PATCH_CHARACTERS,
    WAYS,
    Form,
    Label,
    Opinion,
    StatementJudges,
)
from formulacode_dagster.selection.statements.model_writing import Models, Report, improve
from formulacode_dagster.selection.statements.statements import Stated, state_problem

MakePullRequest = Callable[..., PullRequest]
CLEAN = Opinion(reason="a symptom", label=Label.NONE, span="")
LEAKING = "Do `wanted = frozenset(keys)` and merge is fast."


class Script:
    """A model with scripted answers, in order, that records its requests."""

    def __init__(self, *answers: Frozen, name: str = "scripted") -> None:
        self.name = name
        self.asked: list[tuple[str, str]] = []
        self._answers = list(answers)

    async def answer(self, instructions: str, material: str, form: type[Form]) -> tuple[Form, Cost]:
        self.asked.append((instructions, material))
        said = self._answers.pop(0)
        assert isinstance(said, form)
        return said, Cost(model_calls=1)


@pytest.fixture
def stated(make_pull_request: MakePullRequest, patch: bytes) -> Stated:
    """A statement with one issue, which proposes a mechanism in words."""
    issue = LinkedIssue(
        repository="acme/wheels",
        number=5,
        title="Merge is slow",
        body="It takes 3 s. Hashing would help.",
        author="roadrunner",
        created_at=datetime(2025, 11, 1, tzinfo=UTC),
    )
    pr = make_pull_request(title="TAINT-TITLE of the change", body="TAINT-BODY", issues=[issue])
    return state_problem(pr.facts, patch=patch)


def improved(stated: Stated, patch: bytes, models: Models) -> tuple[ProblemStatement, Cost]:
    return asyncio.run(improve(stated, patch=patch, models=models))


def mechanism(span: str) -> Opinion:
    return Opinion(reason="it says how", label=Label.MECHANISM, span=span)


def test_without_models_nothing_changes(stated: Stated, patch: bytes) -> None:
    assert improved(stated, patch, Models()) == (stated.statement, Cost())


def test_one_judge_is_asked_in_two_ways_and_either_stops_the_text(stated: Stated, patch: bytes) -> None:
    model = Script(CLEAN, mechanism("Hashing would help."))
    statement, cost = improved(stated, patch, Models(judges=StatementJudges([model])))
    assert [instructions for instructions, _ in model.asked] == list(WAYS)
    assert (statement.statement_issue, statement.final_md) == (None, statement.statement_minimal)
    assert (statement.issues, statement.judges) == ((), ("scripted",))
    assert [(leak.kind, leak.span) for leak in statement.left_out] == [("mechanism", "Hashing would help.")]
    assert cost.model_calls == 2


def test_two_judges_are_asked_once_each_and_a_location_is_no_leak(stated: Stated, patch: bytes) -> None:
    place = Opinion(reason="a name", label=Label.LOCATION, span="Merge is slow")
    first, second = Script(CLEAN, name="first"), Script(place, name="second")
    statement, _ = improved(stated, patch, Models(judges=StatementJudges([first, second])))
    assert statement.final_md == stated.statement.final_md
    assert statement.judges == ("first", "second")
    assert len(first.asked) == len(second.asked) == 1


def test_every_judge_of_three_is_asked(stated: Stated, patch: bytes) -> None:
    models = [
        Script(CLEAN, name="first"),
        Script(CLEAN, name="second"),
        Script(mechanism("It takes 3 s."), name="third"),
    ]
    statement, cost = improved(stated, patch, Models(judges=StatementJudges(models)))
    assert [model.asked[0][0] for model in models] == [*WAYS, WAYS[0]]
    assert (statement.statement_issue, statement.judges, cost.model_calls) == (None, ("first", "second", "third"), 3)


def test_judges_see_the_solution_behind_a_large_picture(stated: Stated, patch: bytes) -> None:
    picture = "".join(f"+<path d='{number}'/>\n" for number in range(9_000))
    added = (
        f"diff --git a/a.svg b/a.svg\nnew file mode 100644\n--- /dev/null\n+++ b/a.svg\n@@ -0,0 +1,9000 @@\n{picture}"
    )
    model = Script(CLEAN, CLEAN)
    improved(stated, added.encode() + patch, Models(judges=StatementJudges([model])))
    assert "wanted = frozenset(keys)" in model.asked[0][1]
    assert len(model.asked[0][1]) < PATCH_CHARACTERS * 1.1


def test_an_invented_span_is_asked_again_and_then_ignored(stated: Stated, patch: bytes) -> None:
    model = Script(mechanism("no such words"), mechanism("nor these"), CLEAN)
    statement, cost = improved(stated, patch, Models(judges=StatementJudges([model])))
    assert "'no such words' does not stand in the text" in model.asked[1][1]
    assert [leak.span for leak in statement.left_out] == [""]
    assert cost.model_calls == 3


def test_a_clean_text_of_the_writer_takes_the_place_of_the_template_s(stated: Stated, patch: bytes) -> None:
    writer = Script(Report(text="Merging takes three seconds."), name="writer")
    statement, _ = improved(stated, patch, Models(writer=writer))
    assert statement.final_md == statement.statement_issue
    assert statement.final_md.endswith(
        "## What users reported\n\nPeople are called `@user1`, `@user2` and so on.\n\nMerging takes three seconds.\n"
    )
    assert (statement.writer, statement.issues) == ("writer", ("acme/wheels#5",))


def test_the_writer_sees_only_the_view_and_the_kinds_of_its_leaks(stated: Stated, patch: bytes) -> None:
    writer = Script(Report(text=LEAKING), Report(text="It takes long."))
    statement, _ = improved(stated, patch, Models(writer=writer))
    assert statement.writer == "scripted"
    shown = "\n".join(material for _, material in writer.asked)
    assert "Merge is slow" in shown
    assert "told too much (identifier, line)" in shown
    assert not any(word in shown for word in ("TAINT", "frozenset", "wanted", "roadrunner"))


def test_after_two_rewrites_the_text_without_a_model_stands(stated: Stated, patch: bytes) -> None:
    writer = Script(*[Report(text=LEAKING)] * 3)
    statement, cost = improved(stated, patch, Models(writer=writer))
    assert statement.final_md == stated.statement.final_md
    assert (statement.writer, cost.model_calls) == ("", 3)


def test_a_writer_may_rephrase_a_stopped_template_without_the_mechanism(stated: Stated, patch: bytes) -> None:
    judge = Script(mechanism("Hashing would help."), CLEAN, CLEAN, CLEAN)
    writer = Script(Report(text="It takes three seconds."), name="writer")
    statement, cost = improved(stated, patch, Models(writer=writer, judges=StatementJudges([judge])))
    assert "It takes three seconds." in statement.final_md
    assert (statement.writer, statement.left_out, cost.model_calls) == ("writer", (), 5)


def test_a_text_stopped_by_the_judges_leaves_the_minimal_statement(stated: Stated, patch: bytes) -> None:
    judge = Script(*[mechanism("It")] * 8)
    writer = Script(*[Report(text="It takes long.")] * 3)
    statement, _ = improved(stated, patch, Models(writer=writer, judges=StatementJudges([judge])))
    assert (statement.final_md, statement.writer) == (stated.statement.statement_minimal, "")
