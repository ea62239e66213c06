from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from formulacode_dagster.models.completion import Completion
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.operating.store.completions import StoredCompletions
from formulacode_dagster.operating.store.database import Database
from tests.support.strategies import rows_of


def answer(content: str = "{}", key: str = "k") -> Completion:
    return Completion(key=key, model="m", content=content, tokens_in=10, tokens_out=3, dollars=0.000125)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_answer_comes_back_equal(database: Database, data: st.DataObject) -> None:
    completion = data.draw(rows_of(Completion))
    cache = StoredCompletions(database)
    if cache.get(completion.key) is None:
        cache.put(completion)
        assert cache.get(completion.key) == completion


def test_what_nobody_asked_is_not_there(database: Database) -> None:
    assert StoredCompletions(database).get("k") is None


def test_the_first_answer_stays_so_that_a_month_can_be_repeated(database: Database) -> None:
    cache = StoredCompletions(database)
    cache.put(answer("first"))
    cache.put(answer("second"))
    assert cache.get("k") == answer("first")


def test_a_repeated_answer_is_stored_next_to_the_old_and_is_newest(database: Database) -> None:
    cache, again = StoredCompletions(database), StoredCompletions(database, reask=True)
    cache.put(answer("first"))
    assert again.get("k") is None, "it is to be asked"
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: again.put(answer(str(n))), range(4)))
    again.put(answer("last"))
    cache.put(answer("late"))
    assert cache.get("k") == answer("last")
    with database.transaction() as connection:
        kept = connection.execute(text("SELECT attempt, content FROM completions ORDER BY attempt")).all()
    assert [attempt for attempt, _ in kept] == [1, 2, 3, 4, 5, 6]
    assert kept[0] == (1, "first")


def test_an_answer_that_was_paid_for_outlives_the_process_that_asked(database: Database, database_url: str) -> None:
    StoredCompletions(database).put(answer("paid"))
    another = Database(database_url)
    assert StoredCompletions(another).get("k") == answer("paid")
    another.close()


def test_garbage_of_the_model_is_kept_without_killing_anything(database: Database) -> None:
    cache = StoredCompletions(database)
    cache.put(answer('{"reason": "\x00 \ud83d"}'))
    assert cache.get("k") == answer('{"reason": "\ufffd \ufffd"}')


def test_threads_that_ask_the_same_at_once_agree_on_one_answer(database: Database) -> None:
    cache = StoredCompletions(database)
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda n: cache.put(answer(str(n))), range(24)))
        found = set(threads.map(lambda _: cache.get("k"), range(24)))
    assert len(found) == 1


def test_a_cache_with_a_dead_server_stops_the_stage_before_paying_twice() -> None:
    gone = Database("postgresql://somebody@127.0.0.1:1/nowhere")
    with pytest.raises(OutsideSystemError, match="postgres"):
        StoredCompletions(gone).get("k")
