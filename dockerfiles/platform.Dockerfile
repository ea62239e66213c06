# The platform itself: code location, webserver, daemon and runs, from uv.lock alone. What it builds are the other files here.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
ARG DOCKER_IMAGE=docker:28-cli

# hadolint ignore=DL3006 # its tag is in the argument
FROM ${DOCKER_IMAGE} AS docker

# hadolint ignore=DL3006 # its tag is in the argument
FROM ${PYTHON_IMAGE} AS packages
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/venv
WORKDIR /build
COPY --chmod=0555 dockerfiles/scripts/online /usr/local/bin/
COPY dockerfiles/uv.txt ./
RUN --mount=type=cache,target=/root/.cache \
    --mount=type=secret,id=ca \
    --mount=type=secret,id=index \
    online python3 -m pip install --quiet --no-compile --prefix /usr/local --no-deps --only-binary :all: --require-hashes \
    --requirement uv.txt
COPY pyproject.toml uv.lock ./
# of the project, by their names: what a deployment takes beyond one machine
ARG EXTRAS=""
RUN --mount=type=cache,target=/root/.cache \
    --mount=type=secret,id=ca \
    --mount=type=secret,id=index \
    for extra in ${EXTRAS}; do set -- "$@" --extra "$extra"; done \
    && online uv sync --quiet --frozen --no-dev --no-install-project "$@"

FROM packages AS wheel
COPY LICENSE README.md dagster.yaml workspace.yaml ./
COPY assets assets/
COPY dockerfiles dockerfiles/
COPY formulacode_dagster formulacode_dagster/
COPY resources resources/
COPY sandbox sandbox/
COPY sql sql/
RUN --mount=type=cache,target=/root/.cache \
    --mount=type=secret,id=ca \
    --mount=type=secret,id=index \
    online uv build --quiet --wheel --out-dir /dist

# hadolint ignore=DL3006 # its tag is in the argument
FROM ${PYTHON_IMAGE}
COPY --chmod=0555 dockerfiles/scripts/install-system /usr/local/bin/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=secret,id=ca \
    { command -v git && command -v valgrind; } >/dev/null || install-system git ca-certificates valgrind
COPY --from=docker /usr/local/bin/docker /usr/local/bin/
COPY --from=docker /usr/local/libexec/docker/cli-plugins/docker-buildx /usr/local/libexec/docker/cli-plugins/
RUN useradd --uid 1000 --user-group --create-home --home-dir /var/lib/formulacode formulacode
COPY --from=packages /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LANG=C.UTF-8 \
    FC_HOME=/var/lib/formulacode \
    DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR=1
# The last import leaves bytecode of what services and runs load: they cannot write any.
RUN --mount=type=bind,from=packages,source=/usr/local/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,from=wheel,source=/dist,target=/dist \
    uv pip install --quiet --no-cache --no-deps --offline --python /opt/venv/bin/python /dist/*.whl \
    && python -c "import dagster._cli, dagster._daemon.cli, dagster_webserver.cli, formulacode_dagster.definitions" \
    && fc-data --help >/dev/null
USER 1000:1000
WORKDIR /var/lib/formulacode
CMD ["fc-data", "--help"]
