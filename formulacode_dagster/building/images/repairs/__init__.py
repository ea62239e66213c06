"""Repair without a model: from a log to a changed build.

`rules.toml` is the table, `declarations/providers.toml` translates headers, libraries, programs and modules; `propose`
applies both to one failure, `apply` adds the proposal to a build, `loop` builds until it passes.
"""
