"""Access of a build to the package index."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.engines.docker.settings import DockerBuildSettings
from formulacode_dagster.building.specs import recipes


@pytest.mark.parametrize("certificates", ["certificates", ""])
def test_a_build_mounts_certificates_and_index(certificates: str, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(certificates)
    index = {"UV_DEFAULT_INDEX": "https://index.example/simple"}
    with DockerBuildSettings(ca_bundle=bundle if certificates else None, index=index).options() as options:
        given = dict(option.split("=", 1) for option in options if option.startswith("--build-context"))
        access = Path(given["--build-context"].removeprefix("access="))
        assert (access / "ca").read_text() == certificates
        assert (access / "index").read_text() == "FC_CORES=2\nUV_DEFAULT_INDEX=https://index.example/simple\n"


@pytest.mark.parametrize("name", [*recipes.TIERS, "read"])
def test_no_step_of_a_build_mounts_a_secret(name: str) -> None:
    """In Docker 26 to 27.1, one that does first hashes all files of its image."""
    assert "type=secret" not in recipes.dockerfile(name).read_text()
