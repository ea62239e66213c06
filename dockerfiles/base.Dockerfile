# Tier 1: operating system, interpreter, compilers, the installer and the measuring tools, then the libraries of the task.
# Shared by all tasks of an interpreter; those that need other libraries share all but the last layers.
ARG OS_IMAGE
# hadolint ignore=DL3006 # the tag is in the setting that OS_IMAGE comes from
FROM ${OS_IMAGE}

ENV FC_UV=/opt/formulacode/uv/bin/uv \
    FC_PYTHON=python3 \
    FC_INSTRUMENT=/opt/formulacode/instrument \
    FC_TASK=/opt/formulacode/task \
    FC_VENV=/opt/venv \
    FC_BUILD_VENV=/opt/build \
    FC_CRATES=/opt/formulacode/crates \
    FC_REPOSITORY=/workspace/repo \
    FC_SCRATCH=/tmp/formulacode-build \
    LANG=C.UTF-8

COPY --chmod=0555 scripts/install-compilers scripts/install-system /opt/formulacode/bin/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=bind,from=access,target=/run/secrets \
    /opt/formulacode/bin/install-compilers

COPY --chmod=0555 scripts/ /opt/formulacode/bin/
COPY --chmod=0444 uv.txt instrument.txt python /opt/formulacode/task/
RUN --mount=type=cache,target=/root/.cache \
    --mount=type=bind,from=access,target=/run/secrets \
    /opt/formulacode/bin/online /opt/formulacode/bin/install-tools

RUN useradd --uid 1000 --user-group --create-home --shell /bin/bash formulacode \
    && install -d -o formulacode -g formulacode /workspace /opt/venv \
    && install -d -m 0755 /opt/formulacode/harness
WORKDIR /workspace

COPY --chmod=0444 apt.txt /opt/formulacode/task/
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=bind,from=access,target=/run/secrets \
    xargs --arg-file /opt/formulacode/task/apt.txt /opt/formulacode/bin/install-system \
    && python3 -I /opt/formulacode/bin/describe_toolchain.py >/opt/formulacode/toolchain.json
