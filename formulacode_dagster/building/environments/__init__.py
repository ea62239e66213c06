"""What a task's environment holds: read from what the repository declares at the base commit, pinned and hashed.

`plan.plan_environment` is the way in. Building the environment belongs to `images`.
"""
