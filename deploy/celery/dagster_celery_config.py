"""Configuration of Celery's workers: `dagster_celery.app` looks for a module of this name in PYTHONPATH."""

import os

broker_url = result_backend = os.environ["DAGSTER_CELERY_URL"]
broker_connection_retry_on_startup = True
# Seconds until what a dead worker had taken is handed to another. Dagster ignores a run that comes twice once it has
# begun, so this may be shorter than a run, but never than the start of one.
broker_transport_options = {"visibility_timeout": 3600}
# a run that a worker died of before it began is not lost, and nobody takes one that has to wait while others are free
task_acks_late = True
task_reject_on_worker_lost = True
worker_prefetch_multiplier = 1
# a fresh process for each run, as every other launcher of Dagster has it
worker_max_tasks_per_child = 1
worker_hijack_root_logger = False
worker_redirect_stdouts = False
