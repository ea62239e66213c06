# Tier 2: the repository's history up to an anchor commit, checked out there. Shared by the tasks whose bases descend from
# it, so that each of them holds what differs alone.
ARG BASE_IMAGE
# hadolint ignore=DL3006 # BASE_IMAGE carries a tag that names its content
FROM ${BASE_IMAGE}

USER 1000:1000
# Mounted, so that the bundle itself is in no layer.
RUN --mount=type=bind,source=history.bundle,target=/run/history.bundle \
    /opt/formulacode/bin/fetch-history /run/history.bundle \
    && /opt/formulacode/bin/checkout refs/formulacode/commit
