# A thin door: everything is done by `cargo xtask`, which says what it does and what it misses.
XTASK = $(CARGO) run --quiet --package xtask --
CARGO := $(shell command -v cargo || echo $$HOME/.cargo/bin/cargo)

.PHONY: up test e2e lab lab-down clean-lab

up: cargo ## From this checkout to GitLab on kind: engine, cluster, 13 steps, smoke
	$(XTASK) up

test: cargo ## Format, lints, unit tests, tests against a real kube-apiserver; no root, no Docker
	$(XTASK) test

e2e: cargo ## The checks on a real cluster
	$(XTASK) e2e

lab: cargo ## The lab alone: a kind cluster with all images loaded
	$(XTASK) lab up

lab-down: cargo ## Stop the lab's engine; all stays on disk
	$(XTASK) lab down

clean-lab: cargo ## Delete the lab's cluster and all that it built
	$(XTASK) lab clean

.PHONY: cargo
cargo:
	@test -x "$(CARGO)" || { echo "error: no cargo. Install Rust 1.95 or newer and a C linker: https://rustup.rs, apt-get install gcc libc6-dev"; exit 1; }
