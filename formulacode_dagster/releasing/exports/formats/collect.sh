#!/bin/sh
# Writes the agent's changes of the checkout as a patch, against the copy that was put away before the agent came.
# Runs as root in the agent's container, once the agent has ended. The patch is untrusted input of the grader.
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 077
sealed=/opt/formulacode/sealed/repo
work=/opt/formulacode/work
# it ends its own shell, too
setpriv --reuid=formulacode --clear-groups sh -c 'kill -KILL -1' || true
rm -rf "$work"
mkdir "$work"
# Nothing that the agent could have configured is read: neither the checkout's repository nor anybody's settings.
export HOME="$work" GIT_DIR="$work/git" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
cp -a "$sealed/.git" "$GIT_DIR"
mkdir -p "$GIT_DIR/info"
echo '* -text -filter -ident !diff -working-tree-encoding' >"$GIT_DIR/info/attributes"
tree() {
    cd "$1" &&
        # git records a repository inside as a commit, without its files, and stops at one that has none
        find . -mindepth 2 -name .git -prune -exec rm -rf {} + &&
        git --work-tree="$1" add --all . &&
        git write-tree
}
before=$(tree "$sealed")
after=$(tree "$FC_REPOSITORY")
git diff --binary --no-renames --no-color --no-ext-diff --no-textconv --ignore-submodules "$before" "$after" >"$work/agent.diff"
rm -rf "$GIT_DIR"
