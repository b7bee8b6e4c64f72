# The commands a person needs; each sets up what it uses, so it works on a new machine that has Rust (and, for the real
# models, Python 3). The checks themselves are jobs of .ci/run.

SHELL := bash
FUZZ_SECONDS ?= 600
export DESTDIR PREFIX LIBDIR
.DEFAULT_GOAL := help
.PHONY: help demo test ci conformance model vocabularies bench fuzz lint fmt install install-cli clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: ## convert the bundled small model, verify it, and let it write
	@scripts/setup_build.sh
	cargo build --release -p p64-cli --bin p64
	cargo run --quiet --release -p p64-cli --bin p64 -- demo

test: ## every test: the workspace, model families, C and C++, llama.cpp, bare metal, big-endian, the fuzz targets over their corpora
	.ci/run setup header test conformance tokenizers c_abi llama_adapter firmware big_endian fuzz_smoke

ci: ## everything a change must pass
	.ci/run

conformance: ## make the model families' recipes and llama.cpp's results for them anew; a difference is an error
	scripts/conformance/make.sh

model: ## fetch the two real models into models/ (350 MB)
	scripts/setup_models.sh

vocabularies: ## fetch the vocabularies that llama.cpp tests with, into models/vocabularies (75 MB)
	scripts/setup_vocabularies.sh

bench: model ## measure: the benchmarks of the crates, then prompt and generation speed on both models
	@scripts/setup_build.sh
	cargo bench --workspace
	cargo build --release -p p64-cli --bin p64
	for model in models/*.gguf; do cargo run --quiet --release -p p64-cli --bin p64 -- bench "$$model" -p 512 -n 128 -t 1 -r 5; done

fuzz: ## fuzz every target for FUZZ_SECONDS (600) each
	scripts/setup_fuzz.sh
	scripts/fuzz.sh $(FUZZ_SECONDS)

lint: ## clippy, rustdoc, shellcheck and the tree, without a warning
	.ci/run tree shell fmt clippy docs

fmt: ## format every crate
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	cargo fmt --manifest-path tests/firmware-check/Cargo.toml
	cargo fmt --manifest-path examples/firmware/Cargo.toml --all

install: ## install the C library and the p64 command under PREFIX (/usr/local), DESTDIR in front
	@scripts/setup_build.sh
	scripts/install_c.sh
	cargo build --release -p p64-cli --bin p64
	install -D -m 755 "$${CARGO_TARGET_DIR:-target}/release/p64" "$(DESTDIR)$(or $(PREFIX),/usr/local)/bin/p64"

install-cli: ## install the p64 command alone, into cargo's bin folder
	@scripts/setup_build.sh
	cargo install --locked --path p64-cli

clean: ## remove what builds and fuzzing made; models/ stays
	cargo clean
	rm -rf fuzz/target fuzz/artifacts fuzz/coverage fuzz/corpus-grown out
