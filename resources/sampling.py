"""Settings of timing and grading."""

from __future__ import annotations

from formulacode_dagster.measuring.measurement.plan import SamplingPlan

from .base import SettingsResource, setting


class SamplingResource(SettingsResource):
    """Hands out the plan by which benchmarks are sampled, and the limits of gradings."""

    sample_seconds: float | None = setting("sample_seconds")
    measure_seconds: int | None = setting("measure_seconds")
    grading_seconds: int | None = setting("grading_seconds")
    grading_tries: int | None = setting("grading_tries")
    measurement_concurrency: int | None = setting("measurement_concurrency")

    def plan(self) -> SamplingPlan:
        """How a task is sampled."""
        return SamplingPlan(
            seconds_per_sample=self.settings.sample_seconds,
            max_seconds=self.settings.measure_seconds,
            # tasks side by side disturb each other all the time, which was asked for
            **({"max_repeats": 0} if self.settings.measurement_concurrency > 1 else {}),
        )
