"""The caller: who it is, and what it has left."""

from __future__ import annotations

from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.context import RequestContext, rates_json
from sandbox.github.gateway import Incoming

from .shapes import user_json


def user(asked: RequestContext, _incoming: Incoming) -> Answer:
    """`GET /user`."""
    if asked.account is None:
        return answers.authentication_required()
    return answers.ok(user_json(asked, asked.account.login))


def rate_limit(asked: RequestContext, _incoming: Incoming) -> Answer:
    """`GET /rate_limit`, which costs nothing."""
    resources = rates_json(asked.rates())
    return answers.ok({"resources": resources, "rate": resources["core"]})
