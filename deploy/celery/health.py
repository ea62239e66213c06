"""Health of Celery: workers answer, and every queue has one; in any other a run would wait without a word."""

import sys

from dagster_celery.app import app

from formulacode_dagster.orchestration.placement import BUILD, IO, MEASURE

ANSWER_SECONDS = 5

answers = app.control.inspect(timeout=ANSWER_SECONDS).active_queues() or {}
for worker, queues in sorted(answers.items()):
    print(f"{worker} takes from {', '.join(queue['name'] for queue in queues)}")
served = {queue["name"] for queues in answers.values() for queue in queues}
if unserved := [name for name in (IO, BUILD, MEASURE) if name not in served]:
    sys.exit(f"no worker takes from {', '.join(unserved)}: runs wait there")
