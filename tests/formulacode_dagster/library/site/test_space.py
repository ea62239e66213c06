"""A site as a static Space, by the Hub's own client against the sandbox's Hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from formulacode_dagster.library.site.build import write_site
from formulacode_dagster.library.site.space import publish_space
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.releasing.dataset.hub_client import hub_api
from resources.settings import read_settings
from sandbox.hub import app
from sandbox.server import serving
from tests.support.command_line import FcData
from tests.support.site import hostile_dataset

SPACE, TOKEN, READER = "acme/site", "hf_Writes", "hf_ReadsOnly"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A Hub, which the settings name."""
    hub = app(tmp_path / "hub", tokens=frozenset({TOKEN, READER}), readers=frozenset({READER}))
    with serving(hub) as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield url


def served(url: str) -> dict[str, bytes]:
    paths = hub_api(url, TOKEN).list_repo_files(SPACE, repo_type="space")
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    return {
        path: httpx.get(f"{url}/spaces/{SPACE}/resolve/main/{path}", headers=allowed).raise_for_status().content
        for path in paths
        if path != ".gitattributes"
    }


@pytest.mark.slow
def test_the_space_has_the_files_of_the_folder_and_no_others(url: str, tmp_path: Path, call_fc_data: FcData) -> None:
    hostile_dataset(tmp_path / "data", tasks=3)
    done = call_fc_data("site", "pages", "--from", "data", "--space", SPACE, HF_ENDPOINT=url, HF_TOKEN=TOKEN)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [f"{url}/spaces/{SPACE}"]), done.stderr
    site = tmp_path / "pages"
    first = served(url)
    assert first == {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert first["README.md"].startswith(b"---\ntitle: FormulaCode\nsdk: static\napp_file: index.html\n---\n")

    write_site(hostile_dataset(tmp_path / "less", tasks=1), site)
    publish_space(site, SPACE, read_settings())
    assert set(first) - set(served(url)) == {"tasks/acme__fast-1.html", "tasks/acme__fast-2.html"}


@pytest.mark.parametrize(("token", "said"), [("", "no token for the Space"), (READER, "the Hub refuses to write")])
def test_who_may_not_write_there_is_told_so(
    url: str, token: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    (tmp_path / "site").mkdir()
    with pytest.raises(ConfigurationError, match=said):
        publish_space(tmp_path / "site", SPACE, read_settings())
