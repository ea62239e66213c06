"""Content of a message, and text it never contains."""

from __future__ import annotations

import pytest

from formulacode_dagster.operating.monitoring.alert import LONGEST, SHOWN, Alert, AlertKind, FailedCheck
from formulacode_dagster.operating.monitoring.secrets import SecretFilter, secret_values

CHECK = FailedCheck(asset="images", check="reproduces", blocking=False, summary="2 of 3 differ")


@pytest.mark.parametrize(
    ("alert", "title"),
    [
        (Alert(kind=AlertKind.RUN_FAILED, job="month", partition="2026-02"), "formulacode: month 2026-02 failed"),
        (Alert(kind=AlertKind.RUN_FAILED, job="backup"), "formulacode: backup failed"),
        (
            Alert(kind=AlertKind.CHECKS_FAILED, job="month", partition="2026-02", checks=(CHECK,)),
            "formulacode: month 2026-02 succeeded, checks failed: 1",
        ),
        (
            Alert(kind=AlertKind.MONTH_LATE, partition="2026-02\nBcc: all"),
            "formulacode: 2026-02 Bcc: all is late: it is not released",
        ),
    ],
)
def test_the_title_is_one_line_that_says_what_happened(alert: Alert, title: str) -> None:
    assert alert.title == title


def test_errors_checks_and_run_are_lines_and_what_is_too_much_is_counted() -> None:
    errors = tuple(f"error {number}" for number in range(SHOWN + 2))
    alert = Alert(kind=AlertKind.RUN_FAILED, errors=errors, checks=(CHECK,), run_id="abc", url="http://ui/runs/abc")
    assert list(alert.lines()) == [
        *errors[:SHOWN],
        "and 2 more",
        "images/reproduces: 2 of 3 differ",
        "run abc",
        "http://ui/runs/abc",
    ]


def test_no_secret_is_left_in_any_text_however_it_is_quoted() -> None:
    secrets = SecretFilter(["ghp_first,ghp_second", "postgresql://fc:p%40ss%2Fword9@db/fc", "", "ab"])
    said = "ghp_second refused; ghp_first; p@ss/word9, p%40ss%2Fword9; postgresql://other:pw@db/x; table ab"
    alert = Alert(
        kind=AlertKind.RUN_FAILED,
        job="job ghp_first",
        partition="ghp_first",
        errors=(said, "x" * 2 * LONGEST),
        checks=(CHECK.model_copy(update={"summary": said}),),
    ).without(secrets)
    told = alert.model_dump_json()
    for secret in ("ghp_", "p@ss", "p%40ss", "other:pw"):
        assert secret not in told
    assert alert.errors[0] == "*** refused; ***; ***, ***; postgresql://db/x; table ab"
    assert len(alert.errors[1]) < LONGEST + 5


def test_a_variable_is_a_credential_by_its_name() -> None:
    environment = {
        "AWS_SECRET_ACCESS_KEY": "one",
        "HF_TOKEN": "two",
        "PGPASSWORD": "three",
        "PATH": "/bin",
        "GH_TOKENS": "4",
    }
    assert secret_values(environment) == ["one", "two", "three", "4"]
