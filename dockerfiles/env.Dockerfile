# Tier 3: the locked environment, next to it the requirements of the repository's tests, and a second one for building where
# the build requirements contradict it. Shared by the tasks of one anchor whose locks are equal.
ARG REPO_IMAGE
# hadolint ignore=DL3006 # REPO_IMAGE carries a tag that names its content
FROM ${REPO_IMAGE} AS tests

COPY --chmod=0444 test-requirements.txt /opt/formulacode/task/
# Wheels only, as are all installs that share this cache: code of a source distribution could poison it.
RUN --mount=type=cache,id=formulacode-uv-wheels,target=/var/cache/uv,uid=1000,gid=1000 \
    --mount=type=bind,from=access,target=/run/secrets \
    UV_CACHE_DIR=/var/cache/uv FC_TESTS=/home/formulacode/tests \
    /opt/formulacode/bin/online /opt/formulacode/bin/install-tests

# hadolint ignore=DL3006 # REPO_IMAGE carries a tag that names its content
FROM ${REPO_IMAGE} AS build
ARG CACHE

# Made here, so that the image has none that a build could fill.
USER 0:0
RUN install -d -o 1000 -g 1000 /opt/build
USER 1000:1000
COPY --chmod=0444 build-requirements.txt installer-options /opt/formulacode/task/
RUN --mount=type=cache,id=formulacode-uv-${CACHE},target=/var/cache/uv,uid=1000,gid=1000 \
    --mount=type=cache,id=formulacode-cargo-${CACHE},target=/var/cache/cargo,uid=1000,gid=1000 \
    --mount=type=bind,from=access,target=/run/secrets \
    --mount=type=bind,source=cores-online,target=/sys/devices/system/cpu/online \
    UV_CACHE_DIR=/var/cache/uv CARGO_HOME=/var/cache/cargo \
    /opt/formulacode/bin/online /opt/formulacode/bin/install-environment /opt/build build-requirements.txt

# hadolint ignore=DL3006 # REPO_IMAGE carries a tag that names its content
FROM ${REPO_IMAGE}
ARG CACHE

COPY --chmod=0444 requirements.txt installer-options /opt/formulacode/task/
RUN --mount=type=cache,id=formulacode-uv-${CACHE},target=/var/cache/uv,uid=1000,gid=1000 \
    --mount=type=cache,id=formulacode-cargo-${CACHE},target=/var/cache/cargo,uid=1000,gid=1000 \
    --mount=type=bind,from=access,target=/run/secrets \
    --mount=type=bind,source=cores-online,target=/sys/devices/system/cpu/online \
    UV_CACHE_DIR=/var/cache/uv CARGO_HOME=/var/cache/cargo \
    /opt/formulacode/bin/online /opt/formulacode/bin/install-environment /opt/venv requirements.txt
# Root's, which no build can write.
USER 0:0
RUN /opt/formulacode/bin/hash-records
USER 1000:1000
# Not the user's: the code under measurement has no business in what it is rebuilt with. The mode takes away what would
# run as root.
COPY --from=build --chown=0:0 --chmod=0755 /opt/build /opt/build
COPY --from=tests --chown=0:0 /home/formulacode/tests /opt/formulacode/tests

ENV VIRTUAL_ENV=/opt/venv \
    PATH=/opt/venv/bin:$PATH
CMD ["bash"]
