from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.environments.checks import every_lock_is_hashed, interpreter_is_declared
from formulacode_dagster.building.planning.lock import digest
from formulacode_dagster.models.environment import Environment

HASH = "--hash=sha256:" + "0" * 64
GOOD = f"attrs==25.4.0 \\\n    {HASH} \\\n    {HASH}\nnumpy==2.4.1 \\\n    {HASH}\n"


def environment(lock=GOOD, **changes):
    values = {
        "month": "2026-01",
        "repository_id": 7,
        "number": 12,
        "python": "3.12",
        "python_reason": "asv names it",
        "python_candidates": ("3.12", "3.11"),
        "package_root": ".",
        "config_path": "asv.conf.json",
        "benchmark_dir": "benchmarks",
        "requirements": ("attrs",),
        "lock": lock,
        "lock_sha256": digest(lock),
        "resolver": "uv 0.13.8",
        "exclude_newer": datetime(2026, 1, 15, tzinfo=UTC),
    }
    return Environment(**{**values, **changes})


def test_hashed_locks_pass():
    verdict = every_lock_is_hashed([environment(), environment()])
    assert verdict.passed
    assert verdict.figures["pins"] == 4


def test_a_lock_without_hashes_or_with_other_pins_closes_the_gate():
    pylock = (
        f'[[packages]]\nname = "attrs"\nversion = "{{}}"\nsdist = {{{{ hashes = {{{{ sha256 = "{"0" * 64}" }}}} }}}}\n'
    )
    lock = f"attrs==1.0 \\\n    {HASH}\n"
    assert every_lock_is_hashed([environment(lock, pylock=pylock.format("1.0"))]).passed
    for changes in ({"build_lock": "numpy==1.0\n"}, {"pylock": pylock.format("2.0")}, {"pylock": "[[half"}):
        assert not every_lock_is_hashed([environment(lock, **changes)]).passed


@pytest.mark.parametrize(
    ("lock", "fault"),
    [
        ("attrs==25.4.0\n", "no hash for attrs"),
        (f"attrs>=25.4.0 {HASH}\n", "without a hashed pin"),
        (f"attrs==25.* {HASH}\n", "without a hashed pin"),
        ("attrs==25.4.0 --hash=md5:00\n", "without a hashed pin"),
        (f"attrs @ https://example.org/attrs.whl {HASH}\n", "without a hashed pin"),
        (f"-e . {HASH}\n", "without a hashed pin"),
        (f"./local {HASH}\n", "without a hashed pin"),
        (f"--index-url https://example.org\nattrs==25.4.0 {HASH}\n", "without a hashed pin"),
        ("", "none is pinned"),
    ],
)
def test_anything_but_hashed_pins_shuts_the_gate(lock, fault):
    verdict = every_lock_is_hashed([environment(), environment(lock)])
    assert not verdict.passed
    assert len(verdict.offenders) == 1
    assert fault in verdict.offenders[0]
    assert "repository 7 #12" in verdict.summary


def test_a_checksum_that_is_not_the_locks_shuts_the_gate():
    assert not every_lock_is_hashed([environment(lock_sha256="0" * 64)]).passed


def test_a_declared_interpreter_passes_and_is_counted():
    verdict = interpreter_is_declared([environment(), environment(python="3.11")])
    assert verdict.passed
    assert verdict.figures["python_3.11"] == 1


@pytest.mark.parametrize("changes", [{"python": "3.9"}, {"python_candidates": ()}, {"python_reason": " "}])
def test_an_interpreter_without_declaration_or_reason_shuts_the_gate(changes):
    verdict = interpreter_is_declared([environment(**changes)])
    assert not verdict.passed
    assert verdict.offenders


def test_a_month_without_environments_passes_and_says_so():
    assert every_lock_is_hashed([]).summary == "no environment this month"
    assert interpreter_is_declared([]).passed
