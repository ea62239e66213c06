#!/usr/bin/env bash
# Installs what deploy/systemd does, with Redis and a worker of Celery for each queue. On other machines, `install.sh worker QUEUE…`
# installs workers alone, for io, build or measure. Each machine of workers cleans up after itself every day.
set -euo pipefail
cd "$(dirname "$0")"
fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 1
}
((EUID == 0)) || fail "run it as root"

leads=true queues=(io build measure)
if (($# > 0)); then
    [[ "$1" == worker && $# -gt 1 ]] || fail "give nothing, or: worker QUEUE…"
    leads=false queues=("${@:2}")
    [[ -e /etc/formulacode/settings.env ]] || fail "copy /etc/formulacode/settings.env here from the machine that leads, \
with addresses of Postgres and Redis that this one reaches (DAGSTER_CELERY_URL), readable by root alone"
fi
install -D -m 0644 -t /opt/formulacode/celery dagster_celery_config.py health.py
# before any service starts: without it they are not confined
install -D -m 0644 -t /etc/systemd/system/formulacode-.service.d ../systemd/formulacode-.service.d/*.conf
install -m 0644 formulacode-worker@.service formulacode-housekeeping.service formulacode-housekeeping.timer /etc/systemd/system/
if $leads; then
    command -v redis-server >/dev/null || grep -qs '^DAGSTER_CELERY_URL=' /etc/formulacode/settings.env \
        || fail "apt-get install redis-server, or name another one as DAGSTER_CELERY_URL in /etc/formulacode/settings.env"
    for service in migrate code daemon webserver health; do
        install -D -m 0644 -t "/etc/systemd/system/formulacode-$service.service.d" celery.conf
    done
    EXTRA=celery DAGSTER_YAML=../celery/dagster.yaml ../systemd/install.sh
    install -m 0644 -t /etc/systemd/system/formulacode-health.service.d health.conf
else
    id formulacode >/dev/null 2>&1 || useradd --system --home-dir /var/lib/formulacode --shell /usr/sbin/nologin formulacode
    UV_PROJECT_ENVIRONMENT=/opt/formulacode/venv uv sync --quiet --frozen --no-dev --no-editable --compile-bytecode \
        --project ../.. --extra celery
    install -m 0644 ../systemd/*.slice /etc/systemd/system/
    install -d -o formulacode -g formulacode -m 0700 /var/lib/formulacode /var/lib/formulacode/instance
    install -o formulacode -g formulacode -m 0600 dagster.yaml /var/lib/formulacode/instance/
fi
systemctl daemon-reload

units=("${queues[@]/#/formulacode-worker@}")
systemctl enable "${units[@]/%/.service}"
systemctl restart "${units[@]/%/.service}"
systemctl enable --now formulacode-housekeeping.timer
printf 'waiting for workers to answer\n'
for _ in {1..12}; do
    systemd-run --quiet --wait --pipe --uid formulacode --property EnvironmentFile=/etc/formulacode/settings.env \
        --setenv PYTHONPATH=/opt/formulacode/celery --setenv DAGSTER_CELERY_URL=redis://127.0.0.1:6379/0 \
        /opt/formulacode/venv/bin/python /opt/formulacode/celery/health.py && exit 0
    sleep 10
done
fail 'not every queue has a worker: journalctl -u "formulacode-worker@*"'
