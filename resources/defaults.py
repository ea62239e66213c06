"""The resources as the settings describe them."""

from __future__ import annotations

from .agents import AgentsResource
from .alerts import AlertsResource
from .base import SettingsResource
from .containers import ContainersResource
from .dashboards import DashboardsResource
from .folders import ReportsResource, TaskFoldersResource
from .hub import HubResource
from .intake import IntakeResource, TrackingResource
from .llm import LLMResource
from .mirrors import MirrorsResource
from .postgres import PostgresResource
from .registry import RegistryResource
from .sampling import SamplingResource


def default_resources() -> dict[str, SettingsResource]:
    """Every resource by the name under which the assets ask for it. Reads nothing, needs no secret, opens nothing."""
    return {
        "postgres": PostgresResource(),
        "tracking": TrackingResource(),
        "mirrors": MirrorsResource(),
        "intake": IntakeResource(),
        "llm": LLMResource(),
        "containers": ContainersResource(),
        "agents": AgentsResource(),
        "sampling": SamplingResource(),
        "registry": RegistryResource(),
        "hub": HubResource(),
        "task_folders": TaskFoldersResource(),
        "reports": ReportsResource(),
        "boards": DashboardsResource(),
        "alerts": AlertsResource(),
    }
