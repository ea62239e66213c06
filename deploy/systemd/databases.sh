#!/usr/bin/env bash
# Makes what is missing in this machine's Postgres of the user and the two databases that the settings in $1 name.
set -euo pipefail

as_postgres() { runuser -u postgres -- "$@"; }
last() { sed -n "s|^$2=||p" "$1" | tail -n 1; }
names=$({ last "$1" FC_DATABASE_URL && last "$1" FC_DAGSTER_DATABASE_URL; } \
    | sed -nE 's|^postgresql:///([a-z_]+)[?]host=/var/run/postgresql$|\1|p')
[[ -n "$names" ]] || exit 0

# assigned before they are looked at, so that a Postgres that does not answer ends this
users=$(as_postgres psql --no-psqlrc -At --command 'SELECT rolname FROM pg_roles')
databases=$(as_postgres psql --no-psqlrc -At --command 'SELECT datname FROM pg_database')

grep -qx formulacode <<<"$users" || as_postgres createuser formulacode
for name in $names; do
    grep -qx "$name" <<<"$databases" || as_postgres createdb --owner formulacode "$name"
done
