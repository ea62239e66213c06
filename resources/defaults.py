"""The resources as the settings describe them."""

from __future__ import annotations

from typing import Any

from .containers import ContainersResource
from .github import GitHubResource
from .hub import HubResource
from .intake import IntakeResource, clone_url
from .llm import LLMResource
from .mirrors import MirrorsResource
from .postgres import PostgresResource
from .registry import RegistryResource
from .reports import ReportsResource
from .settings import home, setting
from .tracking import TrackingResource


def default_resources() -> dict[str, Any]:
    """Every resource by the name under which the assets ask for it. Needs no secret; nothing is opened yet."""
    state = str(home())
    return {
        "postgres": PostgresResource(url=setting("FC_DATABASE_URL"), home=state),
        "github": GitHubResource(
            url=setting("GITHUB_API_URL"),
            tokens=setting("GH_TOKENS"),
            home=state,
        ),
        "tracking": TrackingResource(minimum_stars=setting("FC_MINIMUM_STARS"), languages=setting("FC_LANGUAGES")),
        "mirrors": MirrorsResource(
            folder=setting("FC_MIRRORS_DIR"),
            home=state,
            clone_url=clone_url(),
            gigabytes=setting("FC_MIRRORS_GB"),
        ),
        "intake": IntakeResource(
            offline=setting("FC_OFFLINE_SOURCE"),
            api_url=setting("GITHUB_API_URL"),
            tokens=setting("GH_TOKENS"),
            home=state,
            mirrors_folder=setting("FC_MIRRORS_DIR"),
            clone_url=clone_url(),
            gigabytes=setting("FC_MIRRORS_GB"),
        ),
        "llm": LLMResource(
            model=setting("LLM_MODEL"),
            base_url=setting("LLM_BASE_URL"),
            api_key=setting("LLM_API_KEY"),
            max_tokens=setting("LLM_MAX_TOKENS"),
            seconds=setting("LLM_SECONDS"),
            tokens_per_month=setting("LLM_TOKENS_PER_MONTH"),
            dollars_per_month=setting("LLM_DOLLARS_PER_MONTH"),
            dollars_per_million_in=setting("LLM_DOLLARS_PER_MILLION_IN"),
            dollars_per_million_out=setting("LLM_DOLLARS_PER_MILLION_OUT"),
        ),
        "containers": ContainersResource(
            engine=setting("FC_ENGINE"),
            os_image=setting("FC_OS_IMAGE"),
            home=state,
            build_network=setting("FC_BUILD_NETWORK"),
            build_cgroup=setting("FC_BUILD_CGROUP"),
            ca_bundle=setting("FC_CA_BUNDLE"),
            cpus=setting("FC_CPUS"),
            memory_mb=setting("FC_MEMORY_MB"),
            disk_mb=setting("FC_DISK_MB"),
            build_seconds=setting("FC_BUILD_SECONDS"),
            benchmark_seconds=setting("FC_BENCHMARK_SECONDS"),
            rounds=setting("FC_ROUNDS"),
            sample_seconds=setting("FC_SAMPLE_SECONDS"),
            measure_seconds=setting("FC_MEASURE_SECONDS"),
            images_gigabytes=setting("FC_IMAGES_GB"),
            build_cache_gigabytes=setting("FC_BUILD_CACHE_GB"),
        ),
        "registry": RegistryResource(
            url=setting("FC_REGISTRY_URL"),
            namespace=setting("DOCKERHUB_NAMESPACE"),
            username=setting("DOCKERHUB_USERNAME"),
            password=setting("DOCKERHUB_TOKEN"),
            mode=setting("FC_REGISTRY_MODE"),
        ),
        "hub": HubResource(
            dataset=setting("HF_DATASET"),
            endpoint=setting("HF_ENDPOINT"),
            token=setting("HF_TOKEN"),
            token_path=setting("HF_TOKEN_PATH"),
            home=state,
        ),
        "reports": ReportsResource(home=state),
    }
