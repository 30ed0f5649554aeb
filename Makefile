# Two commands do everything: `make speak TEXT="..."` and `make test`.
#
#   make speak TEXT="导航到最近的加油站"   install what is missing, speak (VOICE=kokoro: a larger voice)
#   make test                             run every test
#   make lint types                       what CI checks besides
#   make install / make uninstall         put the service on this machine, take it away

PYTHON ?= python3
VENV ?= .venv
TEXT ?= 你好，我是本机的语音。
# Empty: the daemon's default, at first the voice that comes with utterd.
VOICE ?=
BIN := $(VENV)/bin
# The build for the CPU where the machine has it at hand; any newer one will do as well.
TORCH ?= torch==2.13.0
SOUND_LIBRARY := libportaudio2
TEST_PACKAGES := $(SOUND_LIBRARY) gcc pipewire pipewire-bin pipewire-alsa wireplumber dbus-daemon \
	pipewire-jack libjack-jackd2-dev util-linux \
	systemd systemd-container mmdebstrap \
	qemu-system-x86 busybox-static acpica-tools kmod cpio irqbalance

.PHONY: speak test lint types install uninstall packages test-packages clean

speak: $(BIN)/utterd packages
ifneq ($(VOICE),)
	@$(BIN)/utterd voices list --json | grep -q '"name": "$(VOICE)"' || { \
		$(BIN)/python -m pip install --quiet -e '.[voices]' && $(BIN)/utterd voices add $(VOICE); }
endif
	@$(BIN)/utterd say --start --stages $(if $(VOICE),--voice $(VOICE)) "$(TEXT)"

test: $(BIN)/pytest test-packages
	$(BIN)/pytest

lint: $(BIN)/pytest
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/pytest build/types/utterd
	$(BIN)/mypy -p utterd.audio -p utterd.daemon -p utterd.engine -p utterd.sysconfig

# systemd/install.sh explains DESTDIR and PREFIX; the service needs the system's own Python.
install uninstall: $(BIN)/python
	@PIP="$(abspath $(BIN))/python -m pip" PYTHON=/usr/bin/python3 \
		DESTDIR="$(DESTDIR)" PREFIX="$(or $(PREFIX),/usr/local)" sh systemd/install.sh $@

# ---- what the above need ----

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BIN)/utterd: pyproject.toml | $(BIN)/python packages
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

# libsvm, which ViSQOL needs, comes as C++.
$(BIN)/pytest: pyproject.toml | $(BIN)/python packages
	@sh .ci/need g++
	$(BIN)/python -m pip install --quiet -e '.[dev]' $(TORCH)
	@touch $@

packages:
	@sh .ci/need $(SOUND_LIBRARY) gcc

test-packages:
	@sh .ci/need $(TEST_PACKAGES)

build/types/utterd:
	mkdir -p $@
	for room in audio daemon engine sysconfig; do ln -sfn ../../../$$room $@/$$room; done

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
