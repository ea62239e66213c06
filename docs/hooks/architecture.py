"""Render `docs/architecture.md` from the import contract, the packages' docstrings and the asset graph.

Run as a script, it prints the page; with `--check` (`make house`) it fails if the committed page is stale.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = "formulacode_dagster"
TEMPLATE = """\
# Architecture

This page is generated from the import contract in `pyproject.toml`, the docstrings of the packages and the asset graph
(`make architecture`). `make house` fails if it is out of date.

## Bands

Each band imports from the bands below it, never from above. `make check` enforces the order with import-linter.

```mermaid
flowchart TB
{bands}
```

| floor | band | contents |
|---:|---|---|
{floors}

## Rooms

Within a band, each room imports from the rooms below it; rooms of one floor do not import each other.
{rooms}
## The month

Arrows are the dependencies of the assets: whatever a stage reads, its asset depends on. Every stage is a module
`stage.py` with `async def run(stage, tools) -> StageSummary`.

```mermaid
flowchart TB
{assets}
```
"""


def main(arguments: Sequence[str], page: Path = PAGE) -> int:
    """Print the page, or compare it with the committed one; returns the exit status."""
    rendered = render()
    if "--check" not in arguments:
        sys.stdout.write(rendered)
        return 0
    if page.is_file() and page.read_text(encoding="utf-8") == rendered:
        return 0
    sys.stderr.write(f"{page} does not match the code; run `make architecture` and commit the result\n")
    return 1


def render() -> str:
    """Return the page as it should be now.

    Raises ValueError if a package has no place in the contract, or no docstring.
    """
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [contract for contract in contracts if contract["type"] == "layers"]
    bands = [_names(line) for contract in layers if "containers" not in contract for line in contract["layers"]]
    rooms = {contract["containers"][0]: contract["layers"] for contract in layers if "containers" in contract}
    require_all(bands, rooms)
    return TEMPLATE.format(
        bands="\n".join(_band_chart(bands)),
        floors="\n".join(_floors(bands)),
        rooms="".join(_rooms(bands, rooms)),
        assets="\n".join(_asset_chart()),
    )


def _names(line: str) -> list[str]:
    return [name.strip() for name in line.split("|")]


def require_all(bands: list[list[str]], rooms: dict[str, list[str]]) -> None:
    """Raise ValueError if a package has no band, or a contract of rooms names a package that is no band."""
    declared = {name for names in bands for name in names}
    present = {f"{PACKAGE}.{path.parent.name}" for path in (ROOT / PACKAGE).glob("*/__init__.py")}
    if missing := sorted(present - declared):
        raise ValueError(f"no place in the contract `Bands` for {', '.join(missing)}; add it in pyproject.toml")
    if missing := sorted(name for name in rooms if name not in declared):
        raise ValueError(f"a contract of rooms names {', '.join(missing)}, which is no band")


def _band_chart(bands: list[list[str]]) -> Iterator[str]:
    for floor, names in zip(range(len(bands), 0, -1), bands, strict=True):
        yield f'    floor{floor}["{" · ".join(_short(name) for name in names)}"]'
    for floor in range(len(bands), 1, -1):
        yield f"    floor{floor} --> floor{floor - 1}"


def _floors(bands: list[list[str]]) -> Iterator[str]:
    for floor, names in zip(range(len(bands), 0, -1), bands, strict=True):
        for name in names:
            yield f"| {floor} | `{_short(name)}` | {_summary(name)} |"


def _rooms(bands: list[list[str]], rooms: dict[str, list[str]]) -> Iterator[str]:
    for name in (name for names in bands for name in names if name in rooms):
        yield f"\n### `{_short(name)}`\n\n| floor | room | contents |\n|---:|---|---|\n"
        for floor, line in zip(range(len(rooms[name]), 0, -1), rooms[name], strict=True):
            for room in _names(line):
                yield f"| {floor} | `{room}` | {_summary(f'{name}.{room}')} |\n"
    yield "\n"


def _asset_chart() -> Iterator[str]:
    from formulacode_dagster.orchestration.build import build_definitions, ignore_beta_warnings

    ignore_beta_warnings()
    graph = build_definitions().resolve_asset_graph()
    for key in graph.toposorted_asset_keys:
        yield f"    {key.to_python_identifier()}"
    for key in graph.toposorted_asset_keys:
        for parent in sorted(graph.get(key).parent_keys):
            yield f"    {parent.to_python_identifier()} --> {key.to_python_identifier()}"


def _short(name: str) -> str:
    return name.removeprefix(f"{PACKAGE}.")


def _summary(name: str) -> str:
    path = ROOT / name.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring: Any = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))
    if not docstring:
        raise ValueError(f"{source.relative_to(ROOT)} has no docstring that says what the package contains")
    return str(docstring.partition("\n")[0]).removesuffix(".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
