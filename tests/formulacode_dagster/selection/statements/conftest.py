from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.pull_request import LinkedIssue, PullRequest
from tests import records
from tests.records import make_merged

MakePullRequest = Callable[..., PullRequest]


@pytest.fixture
def patch() -> bytes:
    return b"""\
diff --git a/benchmarks/bench_core.py b/benchmarks/bench_core.py
--- a/benchmarks/bench_core.py
+++ b/benchmarks/bench_core.py
@@ -1,1 +1,2 @@
 import wheels
+table = wheels.Table(rows=10_000, columns=3)
diff --git a/docs/changes.rst b/docs/changes.rst
--- a/docs/changes.rst
+++ b/docs/changes.rst
@@ -1,1 +1,2 @@
 Changes
+Faster ``Table.merge`` for tables with many rows and columns
diff --git a/wheels/core.py b/wheels/core.py
--- a/wheels/core.py
+++ b/wheels/core.py
@@ -1,9 +1,10 @@
 import numpy as np
+from functools import lru_cache
\x20
-    return [row for row in rows if row.key in keys]
+    wanted = frozenset(keys)
+    return [row for row in rows if row.key in wanted]
\x20
+@lru_cache
 def total(values):
-    result = 0
-    for value in values: result += value * self.weight[value]
+    result = np.dot(values, self.weight[values])
     return result
"""


@pytest.fixture
def make_pull_request() -> MakePullRequest:
    def make(
        title: str = "Faster merge", body: str = "", issues: Sequence[LinkedIssue] = (), author: str = "Wile-E"
    ) -> PullRequest:
        facts = make_merged(
            repository="acme/wheels",
            number=77,
            title=title,
            body=body,
            author=author,
            merged_at=datetime(2026, 2, 10, tzinfo=UTC),
            linked_issues=tuple(issues),
        )
        return records.make_pull_request(facts)

    return make
