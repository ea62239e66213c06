"""The site of a dataset all of whose texts try to be more than text."""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import Mock

import pytest

from formulacode_dagster.library import Dataset
from formulacode_dagster.library.site import build
from formulacode_dagster.library.site.build import write_site
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.tables import MonthTables, month_tables
from tests.support.command_line import FcData
from tests.support.release import replay_note, tables_of, task_row
from tests.support.site import HOSTILE, hostile_dataset, hostile_task

FEBRUARY = Month.parse("2026-02")


class Page(HTMLParser):
    """Tags, attributes and text of a page, as a browser takes them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def site(tmp_path: Path) -> Path:
    dataset = hostile_dataset(tmp_path / "data", tasks=3, months=2)
    assert write_site(dataset, tmp_path / "site").tasks == 3
    return tmp_path / "site"


def test_strangers_texts_are_text_and_nothing_else(site: Path) -> None:
    page = Page(site / "tasks" / "acme__fast-1.html")
    assert (page.tags["script"], page.tags["img"], page.tags["textarea"]) == (1, 0, 0)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    # statement, patch, lock, machine, interpreter, commit, category, two kinds of names, a path of each workload
    assert page.text.count(HOSTILE) >= 9
    assert "{{ 7 * 7 }}" in page.text
    links = {value for name, value in page.attributes if name in ("href", "src") and not value.startswith("#")}
    assert {link for link in links if link.startswith("https:")} == {
        f"https://github.com/acme/fast%22%3E%3Cscript%3E1/{path}"
        for path in ("pull/1", f"commit/{'a' * 40}", f"commit/{'b' * 40}")
    }
    assert {link for link in links if not link.startswith("https:")} == {
        "../style.css",
        "../index.html",
        "../months.html",
        "../releases/2026-02.html",
        "../site.js",
    }


def test_pages_link_to_the_server_that_has_the_repository(tmp_path: Path) -> None:
    dataset = hostile_dataset(tmp_path / "data", tasks=1)
    write_site(dataset, tmp_path / "site", web="https://git.corp.example")
    (path,) = (tmp_path / "site" / "tasks").iterdir()
    page = Page(path)
    links = [value for name, value in page.attributes if name == "href" and value.startswith("https:")]
    assert len(links) == 3
    assert all(link.startswith("https://git.corp.example/acme/") for link in links)


def test_pages_run_only_the_sites_scripts_and_load_nothing_external(site: Path) -> None:
    paths = sorted(site.rglob("*.html"))
    assert {path.parent.name for path in paths} == {"site", "tasks", "releases"}
    for path in paths:
        page = Page(path)
        (policy,) = (value for name, value in page.attributes if name == "content" and "default-src" in value)
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'; ")
        root = "." if path.parent == site else ".."
        scripts = {value for name, value in page.attributes if name == "src"}
        assert scripts - {"tasks.js"} == {f"{root}/site.js"}
        assert "style" not in dict(page.attributes)


def test_the_data_of_the_index_is_a_script_that_nothing_ends(site: Path) -> None:
    text = (site / "tasks.js").read_text("ascii")
    assert "<" not in text
    fields = json.loads(text.removeprefix("window.DATA = ").removesuffix(";\n"))["fields"]
    told = {
        name: packed.get("values") or [packed["known"][place] for place in packed["places"]]
        for name, packed in fields.items()
    }
    assert told["task_id"] == ["acme__fast-0", "acme__fast-2", "acme__fast-1"]
    assert {name: values[2] for name, values in told.items()} == {
        "task_id": "acme__fast-1",
        "repo_name": 'acme/fast"><script>1',
        "classification": HOSTILE,
        "difficulty": "easy",
        "speedup": 1.6,
        "speedup_low": 1.4,
        "speedup_high": 3.0,
        "month": "2026-02",
        "merged": "2026-02-14",
        "workloads": "base_suite",
        "replays": "not replayed",
        "reviews": "not reviewed",
        "verified": "not verified",
    }


def test_tables_are_there_for_programs_and_no_text_is_a_formula(tmp_path: Path) -> None:
    row = task_row(1, repo_name="=1+1/x", image_name=None)
    FolderDestination(tmp_path / "data").release(FEBRUARY, tables_of([row]))
    write_site(Dataset.load(tmp_path / "data"), tmp_path / "site")
    (told,) = json.loads((tmp_path / "site" / "tasks.json").read_text("utf-8"))
    assert (told["task_id"], told["repo_name"], told["image_digest"]) == ("acme__fast-1", "=1+1/x", None)
    with (tmp_path / "site" / "tasks.csv").open(encoding="utf-8") as file:
        assert [row["repo_name"] for row in csv.DictReader(file)] == ["'=1+1/x"]
    (month,) = json.loads((tmp_path / "site" / "months.json").read_text("utf-8"))
    assert (month["tag"], month["tasks"]) == ("formulacode@2026-03", 1)


def test_a_releases_page_has_gate_card_and_checksums_of_its_files(site: Path, tmp_path: Path) -> None:
    page = Page(site / "releases" / "2026-02.html")
    released = tmp_path / "data" / "releases" / "formulacode@2026-03"
    for path in ("data/2026-02.parquet", "samples/2026-02.parquet"):
        assert hashlib.sha256((released / path).read_bytes()).hexdigest() in page.text
    assert "No task was probed" in page.text
    assert "It holds 3 tasks in 2 months" in page.text
    assert "pretty_name" not in page.text


def test_pages_tell_on_which_machines_a_task_is_valid(site: Path, tmp_path: Path) -> None:
    there = {"machine": "Xeon, 16 cores", "cpu_family": "GenuineIntel family 6 model 143"}
    lost = replay_note("not_confirmed", **there, measured="unchanged", speedup=1.01, instructions_ratio=1.25)
    replayed = task_row(1, replays=json.dumps([replay_note(), lost]), instructions_ratio=2.5)
    FolderDestination(tmp_path / "replayed").release(FEBRUARY, tables_of([replayed, task_row(2)]))
    write_site(Dataset.load(tmp_path / "replayed"), tmp_path / "pages")
    for page in ("releases/2026-02.html", "tasks/acme__fast-1.html"):
        text = re.sub(r"\s+", " ", Page(tmp_path / "pages" / page).text)
        assert "Validity by machine" in text
        assert re.search(r"EPYC, 2 cores ?1 ?1 ?1 of 1 ?1 of 1 ?1.00 ?– ?1 of 1", text), text
        assert re.search(r"GenuineIntel family 6 model 143 ?1 ?1 ?0 of 1 ?0 of 1 ?0.51 ?– ?0 of 1", text), text
    assert "1.2500×" in text
    for page in (tmp_path / "pages" / "tasks" / "acme__fast-2.html", site / "releases" / "2026-02.html"):
        assert "Validity by machine" not in Page(page).text


def test_a_link_to_the_site_has_a_picture(tmp_path: Path) -> None:
    dataset = hostile_dataset(tmp_path / "data", tasks=1)
    write_site(dataset, tmp_path / "site", url="https://site.example/")
    assert (tmp_path / "site" / "card.png").read_bytes()[16:24] == (1200).to_bytes(4) + (630).to_bytes(4)
    assert ("content", "https://site.example/card.png") in Page(tmp_path / "site" / "index.html").attributes


def test_a_task_page_has_samples_as_pictures_and_hides_its_solution(site: Path) -> None:
    page = (site / "tasks" / "acme__fast-1.html").read_text("utf-8")
    assert page.count('class="dots"') == 6
    assert page.count('class="interval good"') == 2
    assert "base: median" in page
    assert re.search(r">[\d.]+ ms → [\d.]+ ms<svg", page)
    assert "<code>statement_minimal</code></summary>" in page
    before, _, after = page.partition("<details><summary>Show the solution</summary>")
    assert 'class="diff"' not in before
    assert 'class="diff"' in after
    assert "1 pass to pass; 3 of 4 changed lines are executed." in page


def test_base_and_patch_are_flame_graphs_to_one_scale_behind_a_click(site: Path) -> None:
    page = (site / "tasks" / "acme__fast-1.html").read_text("utf-8")
    (flames,) = re.findall(r'<details class="flames">(.*?)</details>', page, re.DOTALL)
    assert re.findall(r'<p class="grey">(.*?)</p>', flames) == ["base: 20 ms a call", "oracle: 10 ms a call"]
    # of each arm the benchmark, and above it what it calls
    assert [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', flames)] == [
        960.0,
        864.0,
        480.0,
        432.0,
    ]
    assert "<title>time_it (bench.py:1), 0.02 s a call</title>" in flames


def test_a_task_that_was_not_profiled_has_none(tmp_path: Path) -> None:
    task = hostile_task(1, "2026-02").model_copy(update={"profiles": ()})
    FolderDestination(tmp_path / "data").release(FEBRUARY, month_tables([task]))
    write_site(Dataset.load(tmp_path / "data"), tmp_path / "site")
    assert "Where the time goes" not in (tmp_path / "site" / "tasks" / "acme__fast-1.html").read_text("utf-8")


def test_the_months_are_told_beside_each_other_the_newest_first(site: Path) -> None:
    text = " ".join(Page(site / "months.html").text.split())
    assert "2026-02 formulacode@2026-03 1 -1" in text
    assert text.index("2026-02 ") < text.index("2026-01 ")


def test_pages_of_withdrawn_tasks_go_and_other_folders_stay(tmp_path: Path) -> None:
    dataset = hostile_dataset(tmp_path / "data", tasks=3, months=2)
    write_site(dataset, tmp_path / "site")
    written = write_site(dataset, tmp_path / "site", ["2026-02"])
    assert (written.tasks, written.months) == (1, 1)
    assert [path.stem for path in (tmp_path / "site" / "tasks").iterdir()] == ["acme__fast-1"]
    assert [path.stem for path in (tmp_path / "site" / "releases").iterdir()] == ["2026-02"]
    with pytest.raises(ConfigurationError, match="2027-01 was not released to"):
        write_site(dataset, tmp_path / "site", ["2027-01"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ConfigurationError, match="contains something other than a site"):
        write_site(dataset, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_a_site_that_was_cut_off_can_be_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, full = hostile_dataset(tmp_path / "data", tasks=1), OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patched:
        patched.setattr(build, "social_card", Mock(side_effect=full))
        with pytest.raises(OutsideSystemError, match="No space left"):
            write_site(dataset, tmp_path / "site")
    assert not (tmp_path / "site" / "index.html").exists()
    assert write_site(dataset, tmp_path / "site").index.exists()


@pytest.mark.parametrize("task_id", ["../../evil", ".hidden", "a/b", "a\0b", ""])
def test_a_task_whose_id_is_no_name_of_a_page_is_refused(task_id: str, tmp_path: Path) -> None:
    FolderDestination(tmp_path / "data").release(FEBRUARY, tables_of([task_row(1, task_id=task_id)]))
    with pytest.raises(ItemFailure, match="cannot be the name of a file"):
        write_site(Dataset.load(tmp_path / "data"), tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_release_without_samples_and_intervals_is_shown_as_it_is(tmp_path: Path) -> None:
    whole = month_tables([hostile_task(1, "2026-02")])
    old = ["speedup_low", "speedup_high", "p_value", "machine", "metric", "workload_source", "weak_tests"]
    tasks = whole.tasks.drop(old)
    FolderDestination(tmp_path / "data").release(FEBRUARY, MonthTables(tasks, {}))
    write_site(Dataset.load(tmp_path / "data"), tmp_path / "site")
    text = Page(tmp_path / "site" / "tasks" / "acme__fast-1.html").text
    assert "not recorded" in text
    assert "bench.time_a" in text
    assert "not drawn" in text


def test_unreadable_samples_differ_from_unreleased_ones(tmp_path: Path) -> None:
    dataset = hostile_dataset(tmp_path / "data", tasks=1)
    (tmp_path / "data" / "samples" / "2026-01.parquet").write_bytes(b"cut")
    with pytest.raises(ItemFailure, match=r"samples/2026-01\.parquet is not a readable Parquet file"):
        write_site(dataset, tmp_path / "site")


def test_the_command_writes_the_site_of_the_dataset_it_is_told(tmp_path: Path, call_fc_data: FcData) -> None:
    hostile_dataset(tmp_path / "data", tasks=2)
    done = call_fc_data("site", "pages", "--from", "data")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2 tasks of 1 months: pages/index.html\n"
    assert str(tmp_path) not in "".join(path.read_text("utf-8") for path in (tmp_path / "pages").rglob("*.html"))


def test_the_readmes_command_writes_the_site_of_the_configured_dataset(tmp_path: Path, call_fc_data: FcData) -> None:
    hostile_dataset(tmp_path / "home" / "dataset", tasks=1)
    done = call_fc_data("site", "build/site")
    assert (done.returncode, done.stdout) == (0, "1 tasks of 1 months: build/site/index.html\n")
    nothing = call_fc_data("site", "elsewhere", "--revision", "formulacode@2027-01")
    assert nothing.returncode == 1
    assert "holds no release formulacode@2027-01" in nothing.stderr
