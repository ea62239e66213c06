from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from formulacode_dagster.library import PR, GitHubClient, Source, TokenPool, render_problem_statement, scrape_links
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.pull_request import LinkedIssue
from formulacode_dagster.operating.store.artifacts import MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from tests.records import make_change

NAME, NUMBER = "astropy/astropy", 16222


def test_a_pull_request_is_frozen_and_knows_its_name() -> None:
    pr = PR(repository=NAME, issue_number=NUMBER)
    assert pr.cache_key == PR(repository="Astropy/Astropy", issue_number=NUMBER).cache_key == "astropy/astropy#16222"
    assert (pr.item, pr.source, pr.facts) == ("astropy/astropy#16222", Source.NAME, None)
    with pytest.raises(ValidationError):
        pr.issue_number = 3  # type: ignore[misc]


@pytest.mark.parametrize(("name", "number"), [("astropy", 1), ("a/b#3", 1), ("a/b", 0), ("a b/c", 1)])
def test_what_names_no_pull_request_is_refused(name: str, number: int) -> None:
    with pytest.raises(ValidationError):
        PR(repository=name, issue_number=number)


def test_it_is_fetched_from_github_with_its_patch(served) -> None:
    pr = asyncio.run(PR.fetch(NAME, NUMBER))
    assert pr.source is Source.GITHUB
    assert pr.facts is not None
    assert (pr.facts.title, pr.facts.author, pr.facts.labels) == (
        "Faster sky coordinates (again)",
        "ada",
        ("performance",),
    )
    assert [issue.number for issue in pr.facts.linked_issues] == [9]
    assert pr.patch is not None
    assert b"+table = build_sky_table" in pr.patch
    assert served.books()["total"] == 3


@pytest.mark.slow
def test_it_is_fetched_from_the_database_where_it_is_stored(served, database: Database) -> None:
    from_github = asyncio.run(PR.fetch(NAME, NUMBER))
    facts = from_github.facts
    assert facts is not None
    patch = b"diff --git a/a.py b/a.py\n"
    change = make_change(patch, month=facts.month, repository_id=facts.repository_id, number=NUMBER)
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [facts])
    assert asyncio.run(PR.fetch(NAME, NUMBER)).source is Source.GITHUB
    with database.transaction() as connection:
        save_changes(connection, [(change, patch)])
    before = served.books()["total"]
    for stored in (PR.fetch("Astropy/astropy", NUMBER), PR.fetch(NAME, NUMBER, database=database)):
        pr = asyncio.run(stored)
        assert (pr.source, pr.facts, pr.change, pr.patch) == (Source.DATABASE, facts, change, patch)
    assert served.books()["total"] == before


def test_no_database_is_made_only_to_look_into_it(served, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("FC_DATABASE_URL")
    assert asyncio.run(PR.fetch(NAME, NUMBER)).source is Source.GITHUB
    assert not (tmp_path / "home" / "postgres").exists()


async def read_all(tokens: TokenPool | list[str]) -> tuple:
    async with GitHubClient(tokens=tokens) as client:
        return (
            await client.get_pr("astro/py", NUMBER),
            await client.get_diff(NAME, NUMBER),
            await client.get_files(NAME, NUMBER),
            await client.get_issue(NAME, 9),
            await client.get_issue(NAME, 9, before=datetime(2024, 3, 10, tzinfo=UTC)),
            await client.get_timeline(NAME, NUMBER),
        )


@pytest.mark.parametrize("tokens", [["one"], TokenPool(["one", "two"])])
def test_a_client_reads_one_pull_request_whole(served, tokens) -> None:
    pr, diff, files, now, then, timeline = asyncio.run(read_all(tokens))
    assert (pr.repository, pr.source) == (NAME, Source.GITHUB)
    assert diff.startswith(b"diff --git a/sky.py b/sky.py\n")
    assert [(file.path, file.status, file.additions, file.binary) for file in files] == [("sky.py", "A", 2, False)]
    assert (now.body, then.body) == ("The cache solved it", "@eve measured it, see #10")
    assert [comment.body for comment in then.comments] == ["Same here"]
    assert [(event.kind, event.source, event.title) for event in timeline] == [
        ("cross-referenced", "astropy/astropy#10", ""),
        ("renamed", "", "Faster sky coordinates (again)"),
        ("merged", "", ""),
        ("closed", "", ""),
    ]
    assert all(event.created_at for event in timeline)


@pytest.mark.slow
def test_a_diff_that_github_has_not_is_read_from_a_mirror(served) -> None:
    async def ask() -> tuple:
        async with GitHubClient() as client:
            return await client.get_diff(NAME, 16300), await client.get_files(NAME, 16300)

    diff, files = asyncio.run(ask())
    assert diff.count(b"diff --git ") == len(files) == 310
    assert served.books()["endpoints"]["GET /repos/{owner}/{repo}/pulls/{number}/files"] == 4


@pytest.mark.slow
def test_files_that_github_does_not_list_are_read_from_a_mirror(served) -> None:
    async def ask() -> tuple:
        async with GitHubClient() as client:
            return await client.get_files(NAME, 16300)

    assert [part.path for part in asyncio.run(ask())] == [f"part{n:03}.py" for n in range(310)]


@pytest.mark.parametrize(("method", "number"), [("get_pr", 1), ("get_diff", 1), ("get_files", 1), ("get_timeline", 1)])
def test_what_is_not_there_is_said_by_name(served, method, number) -> None:
    async def ask() -> None:
        async with GitHubClient() as client:
            await getattr(client, method)(NAME, number)

    with pytest.raises(ItemFailure, match="astropy/astropy") as failure:
        asyncio.run(ask())
    assert failure.value.kind == "vanished"


def test_links_are_a_sequence_with_what_could_not_be_read(served) -> None:
    links = asyncio.run(scrape_links(PR(repository=NAME, issue_number=NUMBER)))
    assert [(link.number, link.distance) for link in links] == [(9, 1), (10, 1)]
    assert (len(links), links[0].title, links[:1][0].number, links.unreadable) == (2, "Sky coordinates are slow", 9, ())


def test_a_statement_is_that_of_the_pipeline(served) -> None:
    pr = asyncio.run(PR.fetch(NAME, NUMBER))
    links = asyncio.run(scrape_links(pr, limit=1))
    text = render_problem_statement(pr, issues=links, repo_description="Astronomy in Python")
    assert text.startswith("# Faster sky coordinates (again)\n\nThe repository `astropy/astropy` (Astronomy in Python)")
    assert "@user3 measured it" in text
    assert "cache solved it" not in text
    assert "@eve measured it" in render_problem_statement(pr, anonymize=False, issues=links)
    own = LinkedIssue(repository=NAME, number=5, title="Mine", created_at=datetime(2024, 1, 1, tzinfo=UTC))
    assert "### Mine" in render_problem_statement(pr, issues=[own])


def test_a_statement_needs_the_facts_and_the_patch(served) -> None:
    with pytest.raises(ConfigurationError, match="no data"):
        render_problem_statement(PR(repository=NAME, issue_number=NUMBER))

    async def facts() -> PR:
        async with GitHubClient() as client:
            return await client.get_pr(NAME, NUMBER)

    pr = asyncio.run(facts())
    with pytest.raises(ConfigurationError, match="patch"):
        render_problem_statement(pr)
    assert render_problem_statement(pr, patch=b"").startswith("# Faster")
