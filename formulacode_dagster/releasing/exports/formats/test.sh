#!/bin/sh
# Grades the work. Nothing that the agent could have put on the path is called.
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
exec python3 -I "${0%/*}/grader.pyz" --report /logs/verifier "$@"
