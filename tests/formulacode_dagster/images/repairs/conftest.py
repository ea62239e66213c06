from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.image import BuildSpec


def make_spec(*, python: str = "3.11", locked: Sequence[str] = (), **more: object) -> BuildSpec:
    """A spec whose lock holds *locked*, pins as `name==version`."""
    fields: dict[str, object] = {
        "task_id": "acme__tool-1",
        "repository": "acme/tool",
        "repository_id": 1,
        "base_sha": "0" * 40,
        "anchor_sha": "0" * 40,
        "python": python,
        "os_image": "python:{python}",
        "instrument": (),
        "lock": "".join(f"{pin} --hash=sha256:{'0' * 64}\n" for pin in locked),
        "lock_sha256": "",
        "package_name": "tool",
        "benchmark_dir": "benchmarks",
        **more,
    }
    return BuildSpec.model_validate(fields)
