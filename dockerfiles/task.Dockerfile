# Tier 3: the locked environment, then the base commit, built and installed.
ARG REPO_IMAGE
# hadolint ignore=DL3006 # REPO_IMAGE carries a tag that names its content
FROM ${REPO_IMAGE}

# Dependencies come before the checkout: tasks with the same anchor and lock share this layer.
COPY --chmod=0444 requirements.txt exclude-newer /opt/formulacode/task/
RUN --mount=type=cache,target=/var/cache/uv,uid=1000,gid=1000 \
    --mount=type=secret,id=ca,uid=1000 \
    --mount=type=secret,id=index,uid=1000 \
    UV_CACHE_DIR=/var/cache/uv /opt/formulacode/bin/online /opt/formulacode/bin/install-environment

COPY --chmod=0444 base-sha package-root build.env build-commands /opt/formulacode/task/
RUN --mount=type=bind,source=history.bundle,target=/run/history.bundle \
    /opt/formulacode/bin/fetch-history /run/history.bundle \
    && /opt/formulacode/bin/checkout

# Offline, as the rebuild after a patch will be.
RUN --network=none /opt/formulacode/bin/install-package

ENV VIRTUAL_ENV=/opt/venv \
    PATH=/opt/venv/bin:$PATH
WORKDIR /workspace/repo
CMD ["bash"]
