"""The documented commands about offline sources, word by word: a month goes in from mirrors, out, and in again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from formulacode_dagster.operating.store.artifacts import MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.windows import checksum_of_month
from tests.support.command_line import FcData
from tests.support.documents import USERS_TEXT
from tests.support.offline import engine

pytestmark = pytest.mark.slow

MONTH = "2026-02"


def commands() -> list[str]:
    lines = re.findall(r"^\.venv/bin/fc-data (.*?)(?:\s+#.*)?$", USERS_TEXT, flags=re.MULTILINE)
    return [line for line in lines if "--offline-source" in line or line.startswith("offline export")]


def test_a_month_goes_in_from_mirrors_and_out_and_in_again(
    tmp_path: Path, database: Database, database_url: str, call_fc_data: FcData
) -> None:
    engine(tmp_path / "mirrors")
    said: list[str] = []
    checksums: list[str] = []
    for command in commands():
        arguments = shlex.split(command.replace("/path/to/mirrors", str(tmp_path / "mirrors")))
        ran = call_fc_data(*arguments, FC_DATABASE_URL=database_url, FC_ENGINE="process")
        assert (ran.returncode, ran.stderr) == (0, ""), command
        said.append(ran.stdout)
        with database.transaction() as connection:
            checksums.append(checksum_of_month(connection, MONTH))
    first, second, out, again = said
    assert f"offline: the folder of mirrors {tmp_path / 'mirrors'}; GitHub is not asked" in first
    assert "2026-02 succeeded in" in first
    assert "3 done" in second
    assert f"{Path('exported') / 'pull_requests.parquet'}: 3 rows" in out
    assert f"offline: files: {tmp_path / 'exported' / 'repositories.parquet'}" in again
    assert checksums[1] == checksums[3]
    with database.transaction() as connection:
        assert [row.number for row in MERGED_PULL_REQUESTS.read(connection, MONTH)] == [2, 3, 4]


def test_an_offline_source_that_is_not_there_is_one_line(tmp_path: Path, call_fc_data: FcData) -> None:
    ran = call_fc_data("run", "--month", MONTH, "--offline-source", "nowhere")
    assert (ran.returncode, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    assert f"the offline source {tmp_path / 'nowhere'} is not there" in line
