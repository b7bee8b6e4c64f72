# shellcheck shell=bash
# The source distribution that llama.cpp and its vocabularies are taken from; sourced by the scripts that fetch it. The
# commit in it is the one whose results lie in tests/data.
# shellcheck disable=SC2034
llama_version=0.3.36
# shellcheck disable=SC2034
llama_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
