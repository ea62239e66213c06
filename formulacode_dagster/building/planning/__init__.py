"""The environment of a task, planned from the declarations at the base commit: interpreter, requirements, lock.

`plan.plan_environment` is the way in. Building the environment belongs to `images`.
"""
