# Reads source distributions: asks uv for a lock where what some of them need is only told by code of theirs.
ARG BASE_IMAGE
# hadolint ignore=DL3006 # BASE_IMAGE carries a tag that names its content
FROM ${BASE_IMAGE} AS read

COPY --chown=1000:1000 . /home/formulacode/question/
USER 1000:1000
WORKDIR /home/formulacode/question/files
# A cache of its own: what this code leaves there must not reach the builds.
RUN --mount=type=cache,id=formulacode-read,target=/var/cache/uv,uid=1000,gid=1000 \
    --mount=type=bind,from=access,target=/run/secrets \
    UV_CACHE_DIR=/var/cache/uv /opt/formulacode/bin/online /opt/formulacode/bin/read-sources /home/formulacode

FROM scratch
COPY --from=read /home/formulacode/answer/ /
