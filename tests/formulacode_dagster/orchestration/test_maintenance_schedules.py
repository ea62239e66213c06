"""A schedule whose run of before is left launches no other."""

from __future__ import annotations

import dagster as dg
import pytest

from formulacode_dagster.orchestration.helpers import helper
from formulacode_dagster.orchestration.jobs import BACKUP_SCHEDULE, HOUSEKEEPING_SCHEDULE, OPERATIONS_SCHEDULE


@pytest.mark.slow
def test_it_skips_while_a_run_of_its_job_is_left_and_names_it() -> None:
    # a schedule asks no instance in memory
    with dg.instance_for_test() as instance:
        instance.add_run(dg.DagsterRun(job_name=helper.name, status=dg.DagsterRunStatus.STARTED))
        for schedule in (HOUSEKEEPING_SCHEDULE, BACKUP_SCHEDULE, OPERATIONS_SCHEDULE):

            def tick(schedule: dg.ScheduleDefinition = schedule) -> tuple[int, str]:
                told = schedule.evaluate_tick(dg.build_schedule_context(instance))
                return len(told.run_requests or []), told.skip_message or ""

            instance.add_run(dg.DagsterRun(job_name=schedule.job_name, status=dg.DagsterRunStatus.FAILURE))
            assert tick() == (1, "")
            left = dg.DagsterRun(job_name=schedule.job_name, status=dg.DagsterRunStatus.STARTING)
            instance.add_run(left)
            launched, why = tick()
            assert launched == 0
            assert left.run_id in why
            instance.delete_run(left.run_id)
            assert tick() == (1, "")
