"""Each way in which a released month can be wrong, and how it is mended: by a revision, the older tags as they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.card import CARD_FILE
from formulacode_dagster.releasing.dataset.checks import reads_back_equal, released_tags_untouched
from formulacode_dagster.releasing.dataset.destination import Destination
from formulacode_dagster.releasing.dataset.edition import newest_number
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.hub_client import download, hub_api
from formulacode_dagster.releasing.dataset.parquet import from_parquet
from formulacode_dagster.releasing.dataset.tables import data_path
from sandbox.hub import app
from sandbox.server import serving
from tests.support.release import replay_note, tables_of

MakeRecord = Callable[..., TaskRecord]
FEBRUARY = Month.parse("2026-02")
FIRST, SECOND, THIRD = "formulacode@2026-03", "formulacode@2026-03.1", "formulacode@2026-03.2"
TOKEN, NAME = "hf_tOkEnOfTheTest", "acme/tasks"
Read = Callable[[str, str], bytes]
"""(path, tag) → content; the newest content for the tag `main`."""


@pytest.fixture(params=["folder", "hub"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Destination, Read]]:
    if request.param == "folder":
        folder = tmp_path / "dataset"

        def read_file(path: str, tag: str) -> bytes:
            return ((folder if tag == "main" else folder / "releases" / tag) / path).read_bytes()

        yield FolderDestination(folder), read_file
        return
    with serving(app(tmp_path / "hub", tokens=frozenset({TOKEN}))) as url:

        def read_hub(path: str, tag: str) -> bytes:
            content = download(hub_api(url, TOKEN), NAME, path, tag)
            assert content is not None
            return content

        yield HubDestination(NAME, url, TOKEN), read_hub


WRONG = {
    "a figure that was measured wrongly": ({1: 1.5, 2: 1.5}, {1: 1.5, 2: 1.2}, "1 changed: acme__fast-2 (speedup)"),
    "a task that is none": ({1: 1.5, 2: 1.5}, {1: 1.5}, "1 no longer there: acme__fast-2"),
    "a task that was lost on the way": ({1: 1.5}, {1: 1.5, 2: 1.5}, "1 new: acme__fast-2"),
    "no task at all": ({}, {1: 1.5}, "1 new: acme__fast-1"),
    "nothing but what is none": ({1: 1.5}, {}, "1 no longer there: acme__fast-1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WRONG)
def test_a_month_that_is_wrong_is_mended_by_a_revision(
    way: str, place: tuple[Destination, Read], record: MakeRecord
) -> None:
    destination, read = place
    wrong, right, difference = WRONG[way]
    before, after = (tables_of([record(n, speedup=s) for n, s in rows.items()]) for rows in (wrong, right))
    first = destination.release(FEBRUARY, before)
    tags, content = dict(destination.tags()), read(data_path("2026-02"), FIRST)

    # nothing is corrected without a reason
    with pytest.raises(ItemFailure, match="--correction WHY") as refused:
        destination.release(FEBRUARY, after, correction=" ")
    assert refused.value.kind == "released_tag"
    assert difference in str(refused.value)
    assert destination.tags() == tags

    second = destination.release(FEBRUARY, after, correction=f"it had {way}")
    assert (second.tag, second.number, second.difference) == (SECOND, 1, difference)
    assert from_parquet(read(data_path("2026-02"), SECOND), "").equals(after.tasks)
    assert from_parquet(read(data_path("2026-02"), "main"), "").equals(after.tasks)
    assert (
        f"- `{SECOND}` differs from the release before: {difference}. Why: it had {way}"
        in read(CARD_FILE, SECOND).decode()
    )
    assert f"| 2026-02 | `{SECOND}` |" in read(CARD_FILE, "main").decode()

    # the older tag is as it was
    assert read(data_path("2026-02"), FIRST) == content
    assert f"- `{SECOND}`" not in read(CARD_FILE, FIRST).decode()
    assert destination.tags() == {**tags, SECOND: second.revision}
    assert released_tags_untouched([first, second], destination.tags()).passed
    assert reads_back_equal("2026-02", [first, second]).passed


@pytest.mark.slow
def test_the_newest_revision_is_found_again_and_corrected_in_its_turn(
    place: tuple[Destination, Read], record: MakeRecord
) -> None:
    destination, read = place
    frames = [tables_of([record(1, speedup=speedup)]) for speedup in (1.5, 1.4, 1.3)]
    destination.release(FEBRUARY, frames[0])
    second = destination.release(FEBRUARY, frames[1], correction="too fast")
    tags = destination.tags()
    assert destination.release(FEBRUARY, frames[1]) == second, "released again it is read back, with its reason"
    assert destination.release(FEBRUARY, frames[1], correction="once more") == second, "there is nothing to correct"
    assert destination.tags() == tags
    third = destination.release(FEBRUARY, frames[2], correction="still too fast")
    assert (third.tag, third.number, third.reason) == (THIRD, 2, "still too fast")
    card = read(CARD_FILE, "main").decode()
    assert [line for line in (f"- `{SECOND}`", f"- `{THIRD}`") if line in card] == [f"- `{SECOND}`", f"- `{THIRD}`"]
    # even the rows of the very first release are then a correction
    with pytest.raises(ItemFailure, match=r"was released before as formulacode@2026-03\.2"):
        destination.release(FEBRUARY, frames[0])


@pytest.mark.slow
def test_the_newest_release_is_read_by_whoever_wants_it(place: tuple[Destination, Read], record: MakeRecord) -> None:
    destination, _ = place
    assert destination.read(FEBRUARY) is None
    frames = [tables_of([record(1, speedup=speedup)]) for speedup in (1.5, 1.4)]
    destination.release(FEBRUARY, frames[0])
    destination.release(FEBRUARY, frames[1], correction="too fast")
    newest = destination.read(FEBRUARY)
    assert newest is not None
    assert newest.tag == SECOND
    assert newest.frame.equals(frames[1].tasks)
    assert destination.read(FEBRUARY.previous()) is None


@pytest.mark.slow
def test_replays_made_since_wait_for_a_revision_that_somebody_asks_for(
    place: tuple[Destination, Read], record: MakeRecord
) -> None:
    destination, read = place
    confirmed = json.dumps([replay_note()])
    before, after = (tables_of([record(1, replays=replays)]) for replays in ("[]", confirmed))
    first = destination.release(FEBRUARY, before)
    assert destination.release(FEBRUARY, after) == first, "by themselves they make no release, and are no other rows"
    assert reads_back_equal("2026-02", [first]).passed
    assert from_parquet(read(data_path("2026-02"), "main"), "")["replays"].to_list() == ["[]"]
    # what else is other still is
    with pytest.raises(ItemFailure, match="--correction WHY"):
        destination.release(FEBRUARY, tables_of([record(1, replays=confirmed, speedup=1.2)]))

    second = destination.release(FEBRUARY, after, correction="replayed on two machines")
    assert (second.tag, second.difference) == (SECOND, "1 changed: acme__fast-1 (replays)")
    assert from_parquet(read(data_path("2026-02"), SECOND), "")["replays"].to_list() == [confirmed]
    assert f"| 2026-02 | `{SECOND}` | 1 | 0 | 1, 1 |" in read(CARD_FILE, "main").decode()
    assert destination.release(FEBRUARY, after) == second


@pytest.mark.slow
def test_other_months_are_not_touched(place: tuple[Destination, Read], record: MakeRecord) -> None:
    destination, read = place
    january = destination.release(FEBRUARY.previous(), tables_of([record(7, month="2026-01")]))
    destination.release(FEBRUARY, tables_of([record(1)]))
    destination.release(FEBRUARY, tables_of([]), correction="it was none")
    assert destination.tags()[january.tag] == january.revision
    assert from_parquet(read(data_path("2026-01"), "main"), "")["task_id"].to_list() == ["acme__fast-7"]


def test_the_newest_number_is_a_number_and_no_text() -> None:
    assert newest_number(FEBRUARY, []) is None
    assert newest_number(FEBRUARY, ["formulacode@2026-04", "formulacode@2026-03x", "formulacode@2026-03.0"]) is None
    assert newest_number(FEBRUARY, [FIRST]) == 0
    assert newest_number(FEBRUARY, [f"{FIRST}.{number}" for number in (1, 2, 9, 10)] + [FIRST]) == 10
