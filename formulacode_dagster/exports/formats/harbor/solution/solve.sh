#!/usr/bin/env bash
# The author's patch.
set -euo pipefail
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
cd "${FC_REPOSITORY:?}"
git apply --whitespace=nowarn - <"$here/oracle.patch"
