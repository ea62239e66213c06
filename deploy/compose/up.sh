#!/usr/bin/env bash
# Builds the platform's image, makes the passwords that are missing, and starts compose.yaml until all of it is healthy.
set -euo pipefail
cd "$(dirname "$0")"

export FC_PLATFORM_IMAGE="${FC_PLATFORM_IMAGE:-formulacode/platform:local}"
export COMPOSE_PROFILES="${COMPOSE_PROFILES-builder}"
if [[ -n ${DEMO:-} ]]; then
    export COMPOSE_PROFILES="$COMPOSE_PROFILES,demo" FC_SETTINGS_FILE="${FC_SETTINGS_FILE:-./demo.env}"
fi
if [[ -z ${FC_DOCKER_HOST:-} && ",$COMPOSE_PROFILES," != *,builder,* ]]; then
    printf 'up.sh: nothing builds: set FC_DOCKER_HOST and FC_DOCKER_CERTS, or leave builder in COMPOSE_PROFILES\n' >&2
    exit 1
fi

umask 077
mkdir -p secrets
for name in postgres_password registry_password; do
    [[ -s secrets/$name ]] || { od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name"; }
done
[[ -e secrets/settings.env ]] || cp ../../.env.example secrets/settings.env

# `docker inspect` shows it; the password, 192 bits by chance, keeps anyone from guessing settings by it
sha256() { sha256sum 2>/dev/null || shasum -a 256; }
settings=(secrets/registry_password "${FC_SETTINGS_FILE:-secrets/settings.env}" ${FC_CA_BUNDLE:+"$FC_CA_BUNDLE"})
FC_SETTINGS_DIGEST=$({ printf '%s\n' "${FC_DOCKER_HOST:-}" && cat "${settings[@]}"; } | sha256 | cut -d ' ' -f 1)
export FC_SETTINGS_DIGEST

socket=${FC_SOCKET:-/var/run/docker.sock}
# of what is mounted there: on a Mac that is a socket of a virtual machine's root
[[ -n ${FC_SOCKET_GROUP:-} ]] || FC_SOCKET_GROUP=$(stat -c %g "$socket" 2>/dev/null || echo 0)
export FC_SOCKET_GROUP

build=(docker build --quiet --file ../../dockerfiles/platform.Dockerfile --tag "$FC_PLATFORM_IMAGE")
[[ -z ${FC_CA_BUNDLE:-} ]] || build+=(--secret "id=ca,src=$FC_CA_BUNDLE")
[[ -z ${FC_PYTHON_IMAGE:-} ]] || build+=(--build-arg "PYTHON_IMAGE=$FC_PYTHON_IMAGE")
[[ -z ${FC_DOCKER_CLI_IMAGE:-} ]] || build+=(--build-arg "DOCKER_IMAGE=$FC_DOCKER_CLI_IMAGE")
[[ -z ${EXTRAS:-} ]] || build+=(--build-arg "EXTRAS=$EXTRAS")
"${build[@]}" ../..

docker compose up --detach --wait --remove-orphans
printf 'Dagster UI: http://%s\n' "${FC_LISTEN:-127.0.0.1:3000}"
