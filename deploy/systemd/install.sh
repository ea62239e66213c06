#!/usr/bin/env bash
# Installs the platform on this machine, from uv.lock, and starts it. Again after an update: it goes on with the same state.
# deploy/celery/install.sh calls it with an extra (EXTRA) and a configuration of Dagster (DAGSTER_YAML) of its own.
set -euo pipefail
cd "$(dirname "$0")"
((EUID == 0)) || { printf 'install.sh: run it as root\n' >&2 && exit 1; }

id formulacode >/dev/null 2>&1 || useradd --system --home-dir /var/lib/formulacode --shell /usr/sbin/nologin formulacode
UV_PROJECT_ENVIRONMENT=/opt/formulacode/venv uv sync --quiet --frozen --no-dev --no-editable --compile-bytecode --project ../.. ${EXTRA:+--extra "$EXTRA"}

install -d -m 0755 /etc/formulacode
if [[ ! -e /etc/formulacode/settings.env ]]; then
    # this machine's Postgres, by the name of the system's user: no password
    install -m 0600 /dev/stdin /etc/formulacode/settings.env.new <<END
$(<../../.env.example)

FC_DATABASE_URL=postgresql:///formulacode?host=/var/run/postgresql
FC_DAGSTER_DATABASE_URL=postgresql:///formulacode_dagster?host=/var/run/postgresql
DAGSTER_POSTGRES_URL=postgresql+psycopg2:///formulacode_dagster?host=/var/run/postgresql
END
    mv /etc/formulacode/settings.env.new /etc/formulacode/settings.env
fi
./databases.sh /etc/formulacode/settings.env
install -m 0644 workspace.yaml /etc/formulacode/
install -d -o formulacode -g formulacode -m 0700 /var/lib/formulacode /var/lib/formulacode/instance
install -o formulacode -g formulacode -m 0600 "${DAGSTER_YAML:-dagster.yaml}" /var/lib/formulacode/instance/dagster.yaml
install -D -m 0644 -t /etc/systemd/system/formulacode-.service.d formulacode-.service.d/*.conf
install -m 0644 ./*.service ./*.slice ./*.target ./*.timer /etc/systemd/system/

systemctl daemon-reload
systemctl enable formulacode.target
systemctl restart formulacode.target formulacode-code.service formulacode-daemon.service formulacode-webserver.service
printf 'waiting for it to answer\n'
for _ in {1..30}; do
    systemctl start formulacode-health.service && exit 0
    sleep 10
done
printf 'install.sh: it does not answer: journalctl -u "formulacode-*"\n' >&2
exit 1
