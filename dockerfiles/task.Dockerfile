# Tier 4: the base commit, built and installed.
ARG ENV_IMAGE
ARG CRATES=none

# Of this stage only the crates stay: code of the repository may have run in it, with a network.
# hadolint ignore=DL3006 # ENV_IMAGE carries a tag that names its content
FROM ${ENV_IMAGE} AS crates
ARG REPOSITORY_ID
COPY --chmod=0555 task/ /opt/formulacode/task/
RUN --mount=type=bind,source=history.bundle,target=/run/history.bundle \
    --mount=type=cache,id=formulacode-cargo-${REPOSITORY_ID},target=/var/cache/cargo,uid=1000,gid=1000 \
    --mount=type=bind,from=access,target=/run/secrets \
    mkdir /home/formulacode/crates \
    && /opt/formulacode/bin/fetch-history /run/history.bundle \
    && /opt/formulacode/bin/checkout \
    && CARGO_HOME=/var/cache/cargo FC_CRATES=/home/formulacode/crates \
    /opt/formulacode/bin/online /opt/formulacode/bin/fetch-crates

# hadolint ignore=DL3006 # ENV_IMAGE carries a tag that names its content
FROM ${ENV_IMAGE} AS crates-none

# Only for what cargo builds: all others are offline.
# hadolint ignore=DL3006 # ENV_IMAGE carries a tag that names its content
FROM ${ENV_IMAGE} AS crates-locked
# Root's, so that no build changes them; the mode takes away what would run as root.
COPY --from=crates --chown=0:0 --chmod=0755 /home/formulacode/crates /opt/formulacode/crates

# hadolint ignore=DL3006 # a stage of this file
FROM crates-${CRATES}
ARG REPOSITORY_ID
ARG COMPILER_CACHE=/var/cache/ccache

# They seldom change from one commit to the next.
COPY --chmod=0555 submodules/ /opt/formulacode/task/submodules/
COPY --chmod=0555 task/ /opt/formulacode/task/
# Offline, as the rebuild after a patch will be. Compiled objects are kept per repository: its code could forge them.
RUN --network=none \
    --mount=type=bind,source=history.bundle,target=/run/history.bundle \
    --mount=type=bind,source=cores,target=/run/cores \
    --mount=type=bind,source=cores-online,target=/sys/devices/system/cpu/online \
    --mount=type=cache,id=formulacode-ccache-${REPOSITORY_ID},target=/var/cache/ccache,uid=1000,gid=1000 \
    /opt/formulacode/bin/fetch-history /run/history.bundle \
    && /opt/formulacode/bin/checkout \
    && CCACHE_DIR=${COMPILER_CACHE} /opt/formulacode/bin/install-package

WORKDIR /workspace/repo
