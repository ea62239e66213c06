from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.specs.spec import (
    INSTRUMENT_VERSIONS,
    base_tag,
    cache_name,
    env_tag,
    installer_options,
    instrument_for,
    instrument_requirements,
    plan_build,
    repo_tag,
    task_tag,
)
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.recipe import InstallMode, Submodule
from tests.support.images import MONTH, Sample, command, make_spec


@pytest.fixture
def spec(pure: Sample) -> BuildSpec:
    return make_spec(pure, "setuptools==1 --hash=sha256:1\n", os_image="python:{python}-slim-bookworm")


def test_a_plan_takes_everything_from_the_environment_and_the_pull_request(pure: Sample) -> None:
    environment = Environment(
        month=MONTH,
        repository_id=7,
        number=5,
        python="3.12",
        python_reason="newest",
        python_candidates=("3.12",),
        package_root="python",
        package_name="tinypure",
        config_path="asv.conf.json",
        benchmark_dir="benchmarks",
        requirements=(),
        build_environment={"A": "1"},
        commands=(command("make"),),
        lock="lock",
        lock_sha256="1" * 64,
        resolver="uv",
        exclude_newer=datetime(2026, 2, 4, tzinfo=UTC),
    )
    spec = plan_build(pr=pure.pull_request(), environment=environment, anchor_sha=pure.anchor, os_image="os:{python}")
    assert (spec.task_id, spec.base_sha, spec.anchor_sha) == ("Acme__tinypure-5", pure.base, pure.anchor)
    assert (spec.python, spec.package_root, spec.commands) == ("3.12", "python", (command("make"),))
    assert spec.exclude_newer == environment.exclude_newer


@pytest.mark.parametrize("python", INSTRUMENT_VERSIONS)
def test_the_instrument_is_pinned_and_hashed_for_every_interpreter(python: str, spec: BuildSpec) -> None:
    assert instrument_for(python)
    assert "==" in instrument_requirements(spec)
    assert "--hash=sha256:" in instrument_requirements(spec)


def test_an_interpreter_without_an_instrument_is_refused() -> None:
    with pytest.raises(ItemFailure, match=r"no pinned asv_runner for Python 2\.7"):
        instrument_for("2.7")


def test_equal_specs_have_equal_tags(spec: BuildSpec) -> None:
    again = BuildSpec.model_validate_json(spec.model_dump_json())
    for tag in (base_tag, repo_tag, env_tag, task_tag):
        assert tag(spec) == tag(again)


def test_tasks_with_wheel_locks_share_an_environment_across_dates(spec: BuildSpec) -> None:
    dates = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
    first, second = (spec.model_copy(update={"exclude_newer": date, "wheels_only": True}) for date in dates)
    assert env_tag(first) == env_tag(second)
    assert installer_options(first) == ("--only-binary", ":all:")


def test_only_builds_of_wheels_share_their_downloads_with_other_repositories(spec: BuildSpec) -> None:
    other = spec.model_copy(update={"repository_id": 8})
    assert (cache_name(spec), cache_name(other)) == ("7", "8")
    wheels = {"wheels_only": True}
    assert {cache_name(each.model_copy(update=wheels)) for each in (spec, other)} == {"wheels"}


def test_source_distributions_have_a_cut_off_with_exceptions(spec: BuildSpec) -> None:
    cut_off = {"exclude_newer": datetime(2018, 5, 1, tzinfo=UTC)}
    later = {"setuptools": datetime(2019, 3, 1, tzinfo=UTC), "numpy": datetime(2018, 6, 29, tzinfo=UTC)}
    assert installer_options(spec.model_copy(update={**cut_off, "later_projects": later})) == (
        *("--exclude-newer", "2018-05-01T00:00:00+00:00"),
        *("--exclude-newer-package", "numpy=2018-06-29T00:00:00+00:00"),
        *("--exclude-newer-package", "setuptools=2019-03-01T00:00:00+00:00"),
    )
    assert "--exclude-newer-package" not in installer_options(spec.model_copy(update=cut_off))


@pytest.mark.parametrize(
    ("change", "tiers"),
    [
        ({"python": "3.12"}, "base repo env task"),
        ({"os_image": "debian:{python}"}, "base repo env task"),
        ({"apt_packages": ("libgeos-dev",)}, "base repo env task"),
        ({"instrument": ("asv_runner==0.2.1",)}, "base repo env task"),
        ({"anchor_sha": "f" * 40}, "repo env task"),
        ({"repository_id": 8}, "repo env task"),
        ({"base_sha": "f" * 40}, "task"),
        ({"lock_sha256": "f" * 64}, "env task"),
        ({"package_root": "python"}, "task"),
        ({"build_environment": {"CFLAGS": "-O1"}}, "task"),
        ({"commands": (command("make"),)}, "task"),
        ({"install_mode": InstallMode.SETUP_PY}, "task"),
        ({"build_arguments": ("setup-args=-Dx=y",)}, "task"),
        ({"submodules": (Submodule(path="lib", repository="acme/lib", sha="f" * 40),)}, "task"),
        ({"build_lock": "setuptools==60.0.0"}, "env task"),
        ({"wheels_only": True}, "env task"),
        ({"exclude_newer": datetime(2026, 1, 1, tzinfo=UTC)}, "env task"),
    ],
)
def test_a_tag_names_all_that_varies_inside(spec: BuildSpec, change: dict[str, object], tiers: str) -> None:
    other = spec.model_copy(update=change)
    differ = {
        "base": base_tag(spec) != base_tag(other),
        "repo": repo_tag(spec) != repo_tag(other),
        "env": env_tag(spec) != env_tag(other),
        "task": task_tag(spec) != task_tag(other),
    }
    assert [name for name, changed in differ.items() if changed] == tiers.split()


def test_tags_can_be_read_and_are_what_docker_takes(spec: BuildSpec) -> None:
    assert base_tag(spec).startswith("formulacode/base:py3.11-python-3.11-slim-bookworm-asv_runner-0.2.0-")
    assert repo_tag(spec).startswith(f"formulacode/acme__tinypure:repo-py3.11-{spec.anchor_sha[:12]}-")
    assert task_tag(spec).startswith(f"formulacode/acme__tinypure:pr5-py3.11-base-{spec.base_sha[:12]}-lock-")
    longest = spec.model_copy(update={"os_image": "registry.example.org/" + "x" * 300, "package_root": "a/" * 90})
    assert env_tag(spec).startswith(f"formulacode/acme__tinypure:env-py3.11-{spec.anchor_sha[:12]}-lock-")
    tags = [tag(longest) for tag in (base_tag, repo_tag, env_tag, task_tag)]
    assert all(len(tag.partition(":")[2]) <= 128 for tag in tags)
