"""`make bench-leaks`: what it prints, and what judges that are set make of the kinds that need one."""

from __future__ import annotations

import asyncio
import json

import pytest

from bench import leaks
from formulacode_dagster.models.items import Cost
from formulacode_dagster.selection.statements.judging import Form, Label, Opinion, StatementJudges
from tests.formulacode_dagster.selection.statements.leaks.cases import Kind, all_cases


class Suspicious:
    """A model that sees a mechanism in each text with a word."""

    name = "suspicious"

    def __init__(self, word: str) -> None:
        self._word = word

    async def answer(self, instructions: str, material: str, form: type[Form]) -> tuple[Form, Cost]:
        del instructions
        label = Label.MECHANISM if self._word in material else Label.NONE
        return form.model_validate({"reason": "", "label": label, "span": ""}), Cost()


def test_mistakes_are_misses_of_leaks_and_alarms_at_clean_texts() -> None:
    cases = list(all_cases())
    telling = [case for case in cases if case.kind is Kind.MECHANISM]
    clean = [case for case in cases if case.kind is None]
    for word, misses, alarms in (("<text-", 0, len(clean)), ("no such word", len(telling), 0)):
        judges = StatementJudges([Suspicious(word)])
        assert asyncio.run(leaks.mistakes(judges, telling, is_clean=False)) == misses
        assert asyncio.run(leaks.mistakes(judges, clean, is_clean=True)) == alarms
    assert Opinion.model_fields.keys() == {"reason", "label", "span"}


@pytest.mark.slow
def test_the_last_line_is_json_and_the_target_is_reached(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_STATEMENT_JUDGES", "")
    assert leaks.main() == 0
    *table, last = capsys.readouterr().out.splitlines()
    report = json.loads(last)
    assert (report["reached"], report["missed_by_rules"]) == (True, 0)
    assert len(table) == 2 + len(report["kinds"]) == 2 + len(Kind) + 1
    assert table[-1].startswith("tried by hand: rules stop 38 of 42, not the mechanism in other words (a mechanism")
    assert (report["tried"], report["seen"]) == (42, 38)
    assert sum("unguarded without a judge" in line for line in table) == 2
