from formulacode_dagster.building.images.stage import work_item
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import EngineName
from tests.records import KEY, make_merged, make_pull_request


def neighbours(lock: str, repository: str = "a/b") -> str:
    environment = Environment.model_construct(**KEY, lock_sha256=lock)
    return work_item(
        make_pull_request(make_merged(repository=repository)), environment, "os", EngineName.DOCKER
    ).neighbours


def test_pull_requests_of_one_lock_are_neighbours_and_others_are_not() -> None:
    assert neighbours("one") == neighbours("one")
    assert neighbours("one") != neighbours("two")
    assert neighbours("one") != neighbours("one", repository="a/c")
