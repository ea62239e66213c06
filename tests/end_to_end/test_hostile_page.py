"""A page that an operator visits cannot use the Dagster UI of that operator, in a real browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from formulacode_dagster.orchestration.ui.webserver import SERVER
from sandbox.server import serving
from tests.support.browser import require_browser
from tests.support.webservers import webserver_of

pytestmark = pytest.mark.slow

UNGUARDED = (str(Path(sys.executable).with_name("dagster-webserver")),)
LIMITS = "{ instance { concurrencyLimits { concurrencyKey } } }"
PAGE = """
<!doctype html>
<img src="{ui}/graphql?{by_image}">
<form method="post" enctype="text/plain" target="form" action="{ui}/graphql?{by_form}"><input name="a" value="b"></form>
<iframe name="form"></iframe>
<iframe id="ui" src="{ui}/server_info"></iframe>
<script>document.forms[0].submit()</script>
"""


def _mutation(key: str) -> str:
    return urlencode({"query": f'mutation {{ setConcurrencyLimit(concurrencyKey: "{key}", limit: 1) }}'})


def _visit(command: tuple[str, ...], home: Path) -> tuple[set[str], dict[str, object]]:
    """Visit the page with a UI of *command* running; returns what it changed, and what the browser saw."""
    require_browser()
    with webserver_of(command, home) as ui:
        content = PAGE.format(ui=ui.url, by_image=_mutation("image"), by_form=_mutation("form"))
        app = Starlette(routes=[Route("/", lambda _: HTMLResponse(content))])
        with serving(app) as page:
            script = str(Path(__file__).with_name("hostile_page.mjs"))
            node = subprocess.run(
                ["node", script, f"{page}/", ui.url], capture_output=True, text=True, timeout=240, check=False
            )
        assert node.returncode == 0, node.stderr
        limits = ui.graphql(LIMITS)["instance"]["concurrencyLimits"]
    return {limit["concurrencyKey"] for limit in limits}, json.loads(node.stdout)


def test_dagsters_own_server_obeys_the_page(tmp_path: Path) -> None:
    changed, seen = _visit(UNGUARDED, tmp_path / "home")
    assert changed == {"image", "form"}
    assert (seen["socket"], seen["rebound"]) == ("open", 200)
    assert "dagster_version" in str(seen["framed"])


def test_the_guard_refuses_the_page_and_the_ui_works(tmp_path: Path) -> None:
    changed, seen = _visit(SERVER, tmp_path / "home")
    assert changed == set()
    assert (seen["socket"], seen["rebound"]) == ("refused", 403)
    assert "dagster_version" not in str(seen["framed"])
    assert seen["failures"] == []
