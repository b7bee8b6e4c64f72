#!/usr/bin/env bash
# A browser without a screen, for the test of the pages that p64 writes (.ci/browser.sh). Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

for browser in chromium chromium-browser google-chrome; do
    command -v "$browser" >/dev/null && exit 0
done
scripts/apt.sh chromium fonts-dejavu-core
