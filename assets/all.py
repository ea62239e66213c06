"""Every asset, in the order of the graph."""

from __future__ import annotations

from .classifications import classifications
from .environments import environments
from .images import images
from .measurements import measurements
from .monthly_report import monthly_report
from .problem_statements import problem_statements
from .published_dataset import published_dataset
from .published_images import published_images
from .pull_requests import pull_requests
from .repositories import repositories

ASSETS = [
    repositories,
    pull_requests,
    classifications,
    problem_statements,
    environments,
    images,
    measurements,
    published_images,
    published_dataset,
    monthly_report,
]
