# Tier 2: the repository's history up to an anchor commit, without a checkout. Shared by the tasks whose bases descend from it.
ARG BASE_IMAGE
# hadolint ignore=DL3006 # BASE_IMAGE carries a tag that names its content
FROM ${BASE_IMAGE}

USER 1000:1000
# Mounted, so that the bundle itself is in no layer.
RUN --mount=type=bind,source=history.bundle,target=/run/history.bundle \
    /opt/formulacode/bin/fetch-history /run/history.bundle
