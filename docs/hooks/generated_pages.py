"""Pages of the site that are made of the code itself: the assets with their columns and checks, and the settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; MkDocs calls this once it knows what is in `docs/`."""
    from mkdocs.structure.files import File

    from resources.documentation import settings_table

    files.append(File.generated(config, "assets.md", content="\n".join(_assets())))
    settings = f"# Settings\n\nAn environment variable each, or a line of `.env`.\n\n{settings_table()}\n"
    files.append(File.generated(config, "settings.md", content=settings))
    return files


def _assets() -> Iterator[str]:
    from formulacode_dagster.orchestration.build import build_definitions

    graph = build_definitions().resolve_asset_graph()
    yield "# Assets"
    yield "\nIn the order of the graph; each is partitioned by month. A check that blocks is a gate for what follows."
    for key in graph.toposorted_asset_keys:
        node = graph.get(key)
        yield f"\n## {key.to_user_string()}\n"
        yield f"{node.description}\n"
        parents = sorted(parent.to_user_string() for parent in node.parent_keys)
        if parents:
            yield f"Reads {', '.join(f'[{name}](#{name})' for name in parents)}.\n"
        yield from _columns(node.metadata.get("dagster/column_schema"))
        yield from _checks(graph, key)


def _columns(value: object) -> Iterator[str]:
    schema = getattr(value, "schema", value)
    if not isinstance(schema, dg.TableSchema):
        return
    yield "| column | type | meaning |\n|---|---|---|"
    for column in schema.columns:
        yield f"| `{column.name}` | {column.type} | {_cell(column.description)} |"
    yield ""


def _checks(graph: Any, key: dg.AssetKey) -> Iterator[str]:
    checks = sorted(graph.get_check_keys_for_assets({key}))
    if not checks:
        return
    yield "| check | blocks | says |\n|---|---|---|"
    for check in checks:
        spec = graph.get_check_spec(check)
        yield f"| `{check.name}` | {'yes' if spec.blocking else 'no'} | {_cell(spec.description)} |"
    yield ""


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")
