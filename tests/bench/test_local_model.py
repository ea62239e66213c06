"""A real model judges a pull request: only where one is served, as `make local-model` does."""

from __future__ import annotations

import asyncio
import os

import pytest

from formulacode_dagster.library import PR, PerfClassifier
from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.store.database import Database
from tests.records import make_merged

URL = os.environ.get("FC_TEST_LOCAL_MODEL", "")
"""Address of a server, as `LLM_BASE_URL`; without one there is no test."""
PATCH = b"diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1 +1 @@\n-a = 1\n+b = 2\n"

if URL:

    @pytest.mark.slow
    @pytest.mark.timeout(1200)
    def test_a_pull_request_is_judged(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = {"LLM_BASE_URL": URL, "LLM_MODEL": "any", "LLM_API_KEY": "none", "LLM_SECONDS": "600"}
        for name, value in {**settings, "LLM_MAX_TOKENS": "512"}.items():
            monkeypatch.setenv(name, value)
        facts = make_merged(repository="acme/wheels", number=1, title="Cache what is computed twice")
        pr = PR(repository="acme/wheels", issue_number=1, facts=facts, patch=PATCH)

        async def judge() -> Classification | ItemFailure:
            async with PerfClassifier(database=database) as classifier:
                try:
                    return await classifier.classify(pr)
                except ItemFailure as failure:
                    return failure

        # a model that small may miss what the form cannot enforce, and nothing worse
        verdict = asyncio.run(judge())
        assert isinstance(verdict, Classification) or verdict.kind is FailureKind.MODEL_ANSWER
