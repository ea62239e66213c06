from collections.abc import Iterator

from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.problems.checks import nothing_leaks
from tests.records import make_statement


def statement(number: int, text: str) -> ProblemStatement:
    return make_statement(text, repository_id=1, number=number)


def test_a_leaking_statement_shuts_the_gate_and_is_named(patch: bytes) -> None:
    def stream() -> Iterator[tuple[ProblemStatement, bytes]]:
        yield statement(1, "Merging is slow"), patch
        yield statement(2, "Use wanted = frozenset(keys)"), patch
        yield statement(3, "Do `wanted = frozenset( keys )`"), patch

    verdict = nothing_leaks(stream(), {(1, 2): "acme/wheels#2"})
    assert not verdict.passed
    assert verdict.offenders == ("acme/wheels#2", "1#3")


def test_clean_statements_pass(patch: bytes) -> None:
    verdict = nothing_leaks([(statement(1, "Merging is slow"), patch)])
    assert verdict.passed
    assert verdict.figures == {"statements": 1, "leaking": 0, "lines": 0}


def test_a_month_without_statements_passes() -> None:
    assert nothing_leaks([]).passed
