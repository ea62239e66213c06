"""Of Dagster, what is neither an asset nor a resource: definitions, jobs, schedules, the instance, runs."""
