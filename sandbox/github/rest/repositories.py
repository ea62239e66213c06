"""Repositories."""

from __future__ import annotations

from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import RequestContext
from sandbox.github.gateway import Incoming

from .finding import find_repository
from .shapes import full_repository_json


def repository(asked: RequestContext, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}`."""
    return answers.ok(full_repository_json(asked, find_repository(asked, incoming)))
