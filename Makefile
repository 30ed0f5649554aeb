# Two commands do everything: `make speak TEXT="..."` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: lint types test

build/types/utterd:
	mkdir -p $@
	for room in audio daemon engine sysconfig; do ln -sfn ../../../$$room $@/$$room; done

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: build/types/utterd
	$(BIN)/mypy -p utterd.audio -p utterd.daemon -p utterd.engine -p utterd.sysconfig
