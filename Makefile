# Two commands do everything: `make run` and `make test`. Both make .venv first if it is absent or broken.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup setup-ray run play test test-slow lint bench clean

help:  ## show this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup:
	@$(PYTHON) scripts/setup_venv.py

setup-ray:  ## add Ray, for --executor ray (docs/scaling.md)
	@$(PYTHON) scripts/setup_venv.py ray

run: setup  ## set up, and run the default study (registry.yaml)
	@$(VENV)/python -m framework.run registry.yaml $(ARGS)

play: setup  ## set up, and serve the page to play with
	@$(VENV)/python -m framework.play $(ARGS)

test: setup  ## set up, and run the tests (as root on Debian, Chromium is installed for those in a browser)
	@$(PYTHON) scripts/setup_chromium.py
	@$(VENV)/python -m pytest -n 2 $(ARGS)

test-slow:  ## the tests that take minutes, some of them beside other people's code
	@$(PYTHON) scripts/setup_venv.py peers integrations ray
	@$(VENV)/python -m pytest -m slow $(ARGS)

lint: setup  ## ruff, mypy, import layers
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .
	@$(VENV)/mypy
	@$(VENV)/lint-imports --no-logo

bench: setup  ## speed, as ratios within one run
	@$(VENV)/python -m benchmarks $(ARGS)

clean:  ## remove .venv and caches (runs/ stays)
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache *.egg-info
