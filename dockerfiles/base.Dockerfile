# Tier 1: operating system, interpreter, compilers, the installer and the measuring tools. Shared by all tasks of an interpreter.
ARG OS_IMAGE
# hadolint ignore=DL3006 # the tag is in the setting that OS_IMAGE comes from
FROM ${OS_IMAGE}

ENV FC_UV=/opt/formulacode/uv/bin/uv \
    FC_PYTHON=python3 \
    FC_INSTRUMENT=/opt/formulacode/instrument \
    FC_TASK=/opt/formulacode/task \
    FC_VENV=/opt/venv \
    FC_REPOSITORY=/workspace/repo \
    FC_SCRATCH=/tmp/formulacode-build \
    LANG=C.UTF-8

COPY --chmod=0555 scripts/ /opt/formulacode/bin/
COPY --chmod=0444 uv.txt instrument.txt apt.txt python /opt/formulacode/task/

RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=secret,id=ca \
    /opt/formulacode/bin/install-system

RUN --mount=type=cache,target=/root/.cache \
    --mount=type=secret,id=ca \
    --mount=type=secret,id=index \
    /opt/formulacode/bin/online /opt/formulacode/bin/install-tools

RUN useradd --uid 1000 --user-group --create-home --shell /bin/bash formulacode \
    && install -d -o formulacode -g formulacode /workspace /opt/venv \
    && install -d -m 0755 /opt/formulacode/harness
WORKDIR /workspace
