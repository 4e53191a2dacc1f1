# One entry for people. `make report` and `make test` need git, make and Python ≥ 3.11, nothing else.
VENV := .venv
READY := $(VENV)/.ready
BIN := $(VENV)/bin
# The newest suitable Python by name, else whatever python3 is: bootstrap.py then says what is wrong with it.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && exit; done; echo python3)

.DEFAULT_GOAL := help
.PHONY: help report test fuzz attacks faults lab notebooks portable readme student bench doctor wheel newest clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "make %-10s %s\n", $$1, $$2}'

report: $(READY)  ## execute every notebook and write report/index.html (opens offline)
	@$(BIN)/eigenlib report $(ARGS)

test: $(READY)  ## all tests, the real-browser ones included
	@$(BIN)/python tools/get_browser.py
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

fuzz: $(READY)  ## the fuzz of the tests, ten times as long
	@EIGENLIB_FUZZ=10 $(BIN)/python -m pytest -s tests/test_fuzz.py $(ARGS)

attacks: $(READY)  ## what hostile submissions might try while `eigenlib grade` runs, class by class (half an hour)
	@$(BIN)/python tests/eigencourse/grading/attacks.py $(ARGS)

faults: $(READY)  ## kill, interrupt and starve every long command; a rerun must give the same bytes (half an hour)
	@$(BIN)/python tests/helpers/faults.py $(ARGS)

lab: $(READY)  ## open JupyterLab on notebook 00
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.app_settings_dir=$(CURDIR)/tools/lab --KernelManager.transport_encryption=auto notebooks/00_start_here.ipynb

notebooks: $(READY)  ## execute the notebooks in place and store their outputs, then bring the README up to date
	@$(BIN)/eigenlib notebooks $(ARGS)
	@$(BIN)/eigenlib readme

portable: $(READY)  ## execute the notebooks as on other CPUs: does any text or verdict differ?
	@$(BIN)/eigenlib portable $(ARGS)

readme: $(READY)  ## bring the README's tables and pictures up to date with the stored notebooks
	@$(BIN)/eigenlib readme $(ARGS)

student: $(READY)  ## write the course to hand out and to teach from: build/student, build/instructor
	@$(BIN)/eigenlib student $(ARGS)

bench: $(READY)  ## what is fast, against what, as ratios measured in one run
	@for bench in benchmarks/*.py; do $(BIN)/python $$bench && echo || exit 1; done

doctor: $(READY)  ## is this machine ready?
	@$(BIN)/eigenlib doctor $(ARGS)

wheel: $(READY)  ## build the wheel and try it in an empty environment
	@$(BIN)/python tools/try_wheel.py

newest: $(READY)  ## the tests with the newest version of every package, in a scratch environment: what breaks?
	@$(BIN)/python tools/newest.py $(ARGS)

clean:  ## remove the report and everything make set up
	rm -rf $(VENV) report .report.* build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml constraints.txt requirements-lock.txt tools/bootstrap.py
	@command -v $(PYTHON) >/dev/null || { echo "No python3 was found: install Python 3.11 or newer, then run make again." >&2; exit 1; }
	@$(PYTHON) tools/bootstrap.py $(VENV)
