#!/usr/bin/env bash
# What must never be committed: large files, paths of somebody's machine, hosts of package registries.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0

complain() { # TITLE, then the offending lines on stdin
    local lines
    lines=$(cat)
    [ -n "$lines" ] || return 0
    printf '%s:\n%s\n' "$1" "$lines" >&2
    bad=1
}

complain "files over 2 MiB" < <(git ls-files -z | xargs -0 -r stat -c '%s %n' | awk '$1 > 2 * 1024 * 1024')

# Before a path stands no part of another one: `tests/data/` is not `/data/`.
start='(^|[^A-Za-z0-9_.)/-])'
paths=(-e "$start/home/[a-z]" -e "$start/Users/[A-Za-z]")
# The folder above this checkout and the home folder, where they are deep enough to mean one machine.
for path in "$(dirname "$PWD")" "$HOME"; do
    case $path in /?*/?* | /root) paths+=(-e "$start${path//./\\.}/") ;; esac
done
complain "paths of a machine" < <(git grep -InE "${paths[@]}" -- . ':!.ci/tree.sh' ':!.gitignore' || true)

hosts='crates\.io|pypi\.org|pythonhosted\.org|npmjs\.(org|com)|debian\.org'
# Cargo writes its registry's name into lock files; nothing else has a reason to.
complain "hosts of package registries" < <(git grep -InE "$hosts" -- . ':!*Cargo.lock' ':!.ci/tree.sh' || true)
complain "lock files that name another registry" \
    < <(git grep -nE '^source = ' -- '*Cargo.lock' | grep -v 'registry+https://github.com/rust-lang/crates' || true)

complain "unfinished marks" < <(git grep -InE '\b(TODO|FIXME)\b|#\[ignore' -- '*.rs' '*.py' '*.sh' '*.c' '*.h' ':!.ci/tree.sh' || true)

[ "$bad" -eq 0 ]
echo "$(git ls-files | wc -l) files, none of them out of place"
