#!/usr/bin/env bash
# Lays out what containers read: settings and secrets as files of their user, no secret in an environment or in YAML.
set -euo pipefail
readonly settings=/etc/formulacode/settings database=/etc/formulacode/database state=/var/lib/formulacode
readonly ui=/etc/formulacode/ui users=/etc/formulacode/users

# Reads what it puts into the file $1 of the platform's user.
put() {
    install -D -o 1000 -g 1000 -m "${2:-0400}" /dev/stdin "$1"
}

{
    cat /run/secrets/settings
    # of two lines with one name the first counts
    cat <<END

FC_DATABASE_URL=postgresql://formulacode@postgres/formulacode
FC_DAGSTER_DATABASE_URL=postgresql://formulacode@postgres/dagster
FC_ENGINE=docker
FC_REGISTRY_URL=http://registry:5000
DOCKERHUB_USERNAME=formulacode
DOCKERHUB_TOKEN=$(cat /run/secrets/registry_password)
DOCKER_HOST=$DOCKER_HOST_OF_BUILDS
DOCKER_TLS_VERIFY=1
DOCKER_CERT_PATH=$settings/docker
END
    if [[ -s /run/secrets/certificates ]]; then
        printf '%s=%s\n' FC_CA_BUNDLE "$settings/ca.pem" SSL_CERT_FILE "$settings/ca.pem" GIT_SSL_CAINFO "$settings/ca.pem"
    fi
} | put "$settings/.env"
{ env && cat /run/secrets/settings; } | { grep -E '^(export +)?FC_UI_[A-Z]+ *= *[^ ]' || true; } | put "$ui/.env"
if [[ -s /run/secrets/certificates ]]; then
    put "$settings/ca.pem" </run/secrets/certificates
fi
for name in ca cert key; do
    source=/certs/client/$name.pem
    [[ -e $source ]] || source=/certs/$name.pem
    put "$settings/docker/$name.pem" <"$source"
done
# shellcheck disable=SC2016  # $ of a salt, not of the shell
salt=$(od -An -N11 -tx1 /dev/urandom | tr -d ' \n') # 22 characters, as bcrypt takes them
perl -e '$_ = <STDIN>; chomp; print "formulacode:", crypt($_, "\$2b\$10\$" . $ARGV[0]), "\n"' "$salt" \
    </run/secrets/registry_password >"$users/htpasswd"
printf 'postgres:*:*:formulacode:%s\n' "$(cat /run/secrets/postgres_password)" | put "$database/pgpass"

sed "s/@PROJECT@/$PROJECT/g" /run/dagster.yaml | put "$state/instance/dagster.yaml" 0444
chown 1000:1000 "$settings" "$settings/docker" "$database" "$ui" "$state" "$state/instance"
chmod 0700 "$settings" "$settings/docker" "$database" "$ui"
