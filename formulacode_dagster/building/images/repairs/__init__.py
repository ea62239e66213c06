"""Repair without a model: what a log says → what is to be built differently.

`rules.toml` is the table, `declarations/providers.toml` what headers, libraries, programs and modules are called
elsewhere; `propose` applies both to one failure, `apply` puts what was proposed into a build, `loop` builds until it
holds.
"""
