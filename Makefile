# Every target does its own set-up on a fresh clone; a second call is fast. `make` alone lists them.

SHELL := /bin/bash
BIN   := .venv/bin

# The first Python that is new enough. `make PYTHON=/path/to/python3 ...` overrides.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)

# Where the platform keeps everything: YARD_DATA, or the same default as `yard up`.
ROOT         := $(shell [ "$$(id -u)" = 0 ] && echo yes)
DEFAULT_DATA := $(if $(ROOT),/var/lib/gpuyard,$(HOME)/.local/share/gpuyard)
YARD_DATA    ?= $(DEFAULT_DATA)

# More options for `yard up`: make run UP="--port 9000"
UP ?=
# Benches by their names, or their groups': make bench ONLY=gateway,ssh
ONLY ?=
# A machine without accelerators gets eight simulated ones, always labelled so.
CARDS := $(if $(wildcard /dev/nvidia0 /dev/davinci0),,--simulate-cards 8)

PIP   := $(BIN)/python -m pip --disable-pip-version-check -qq
YARD  := env -u YARD_URL -u YARD_TOKEN YARD_DATA="$(YARD_DATA)" $(BIN)/yard
CHECK := src tests $(wildcard lab)
# What an ordinary installation has, and one that runs from here as well: without it a start takes half as long again.
BYTECODE := $(BIN)/python -m compileall -q src/gpuyard

.DEFAULT_GOAL := help
.PHONY: help run stop prepare test test-fast test-near check bench soak web python-check web-check pictures clean
.PHONY: system-packages bench-names bench-packages name-yard

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 16

run: .venv/.server name-yard .venv/.console ## set up and start the platform in the background
	@if $(YARD) whoami >/dev/null 2>&1; then \
	  echo "gpuyard is already running ($(YARD_DATA))."; \
	  echo "gpuyard 已经在运行（$(YARD_DATA)）。"; \
	else \
	  $(YARD) up --data "$(YARD_DATA)" --detach $(CARDS) $(UP); \
	fi
	@echo
	@echo "Type next / 接下来输入:"
	@if [ "$(YARD_DATA)" != "$(DEFAULT_DATA)" ]; then echo "  export YARD_DATA=\"$(YARD_DATA)\""; fi
	@echo "  yard run --cards 2 -- python3 -c \"print('hello')\""
	@echo "  yard ls      what runs and why the rest waits / 正在运行的任务，以及其余任务为何等待"
	@echo "  yard --help  everything else / 其他全部命令"
	@echo "  make stop    stop the platform; running work goes on, make run starts it again /"
	@echo "               停止平台，正在运行的任务继续；make run 再次启动"

stop: .venv/.server ## stop the platform; running work goes on
	@if $(YARD) whoami >/dev/null 2>&1; then $(YARD) down --data "$(YARD_DATA)"; \
	else echo "gpuyard is not running ($(YARD_DATA)). / gpuyard 没有运行。"; fi

# Kept outside this clone, in $GPUYARD_TEST_CACHE or ~/.cache/gpuyard-tests, for all clones; `make clean` leaves it alone.
# A real framework for the tests that train is large, so only where it is asked for: make test TORCH=2.13.0
prepare: .venv/.dev system-packages ## make what tests need that takes long to get
	@$(BIN)/python -m tests.prepare $(if $(TORCH),--torch $(TORCH))

test: prepare .venv/.console ## set up and run the tests
	$(BIN)/python -m tests.runner -m "not soak"

test-fast: .venv/.dev ## the tests that need nothing but Python, in 90 seconds
	$(BIN)/python -m tests.fast

test-near: prepare .venv/.console ## the tests near to what changed; SINCE=origin/main: on the whole branch
	$(BIN)/python -m tests.near $(if $(SINCE),--since $(SINCE))

check: .venv/.dev ## lint, format and types
	@$(MAKE) --no-print-directory -j2 --output-sync=target python-check web-check

python-check: .venv/.dev
	$(BIN)/ruff check $(CHECK)
	$(BIN)/ruff format --check $(CHECK)
	$(BIN)/mypy $(CHECK)

bench: bench-names prepare bench-packages .venv/.console ## measure the promises made about speed; ONLY=gateway,ssh: some of them
	@$(BYTECODE)
	@$(BIN)/python -m lab.bench $(ONLY)

web: ## build the console (needs Node 20 or newer)
	@rm -f .venv/.console
	@$(MAKE) --no-print-directory .venv/.console

soak: prepare .venv/.console ## the long runs: hundreds of kills on both databases
	$(BIN)/python -m tests.runner -m soak --timeout=0

pictures: .venv/.dev system-packages .venv/.console ## make the pictures in README and the tutorials anew
	YARD_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/console/test_pictures.py

clean: ## remove what the other targets made here (never the data)
	@if [ -x $(BIN)/yard ] && $(YARD) whoami >/dev/null 2>&1; then \
	  echo "gpuyard is running from here; \`make stop\` first."; exit 1; fi
	@for link in /usr/local/bin/yard "$(HOME)/.local/bin/yard"; do \
	  if [ "$$(readlink "$$link")" = "$(CURDIR)/$(BIN)/yard" ]; then rm -f "$$link"; fi; done
	rm -rf .venv build dist web/build web/node_modules src/gpuyard/console/built .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests $(wildcard lab) -name __pycache__ -type d -prune -exec rm -rf {} +

# --- set-up -----------------------------------------------------------------------------------------------------------

# A virtual environment that works is kept, one that an interrupted run left half-made is not.
.venv/.made:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "gpuyard needs Python 3.11 or newer; none was found. / gpuyard 需要 Python 3.11 或更新版本，没有找到。"; exit 1; fi
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  rm -rf .venv; \
	  $(PYTHON) -c 'import ensurepip' 2>/dev/null || $(call apt-install,python3-venv); \
	  echo "Making .venv with $$($(PYTHON) --version)"; \
	  $(PYTHON) -m venv .venv; \
	fi
	@touch $@

.venv/.server: .venv/.made pyproject.toml
	@echo "Installing gpuyard (server) into .venv"
	@$(PIP) install -e ".[server]"
	@$(BYTECODE)
	@touch $@

.venv/.dev: .venv/.made pyproject.toml
	@echo "Installing gpuyard (server, dev) into .venv"
	@$(PIP) install -e ".[server,dev]"
	@$(BYTECODE)
	@touch $@ .venv/.server

# The console is built where Node is; without it the server runs all the same and says how to get one.
NODE_IS_NEW := $(shell node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null && echo yes)
WEB_SOURCES := $(shell find web/src web/public web/*.json web/*.ts web/*.html -type f -not -name schema.d.ts 2>/dev/null)
NPM         := npm --prefix web --no-fund --no-audit --no-update-notifier --loglevel=error

# Not `npm ci`: it wants every platform's build of every tool in the lock file, and a registry may hold only some.
.venv/.npm: .venv/.made web/package.json web/package-lock.json
	@echo "Installing what the console is built with"
	@$(NPM) install --no-save >/dev/null
	@touch $@

# Types of the api, from its own description.
.venv/.api-types: .venv/.server .venv/.npm $(wildcard src/gpuyard/api/*.py src/gpuyard/domain/*.py)
	@mkdir -p web/build && $(BIN)/python -m gpuyard.api.published > web/build/openapi.json
	@$(NPM) run --silent types >/dev/null
	@touch $@

ifeq ($(NODE_IS_NEW),yes)
.venv/.console: .venv/.api-types $(WEB_SOURCES)
	@echo "Building the console"
	@$(NPM) run --silent build -- --logLevel warn
	@touch $@

web-check: .venv/.api-types
	$(NPM) run --silent check
	$(NPM) run --silent test
else
.venv/.console: .venv/.made
	@echo "!! Node 20 or newer is missing: the console is not built. / 缺少 Node 20 或更新版本：未构建控制台。"

web-check:
	@echo "!! Node 20 or newer is missing: the console is not checked."
endif

# What the tests need from the system. Never fails: what cannot be installed is skipped, aloud.
system-packages:
	@if ! command -v ssh >/dev/null || ! command -v rsync >/dev/null || [ ! -x /usr/lib/openssh/sftp-server ]; then \
	  $(call apt-install,openssh-client openssh-sftp-server rsync) || true; fi
	@if ! PATH="$$PATH:$$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')" command -v initdb >/dev/null; then \
	  $(call apt-install,postgresql) || true; fi
	@missing=""; for program in podman iptables busybox patchelf slirp4netns getfacl; do \
	  PATH="$$PATH:/usr/sbin:/sbin" command -v $$program >/dev/null || missing=yes; done; \
	if [ -n "$$missing$(DOCKER)" ] || ! [ -e /usr/lib/podman/netavark ]; then $(call apt-install,$(CONTAINERS)) || true; fi
	@missing=""; for program in chromium debootstrap g++ make krb5-config; do \
	  PATH="$$PATH:/usr/sbin:/sbin" command -v $$program >/dev/null || missing=yes; done; \
	if [ -n "$$missing" ] || ! [ -d /usr/share/fonts/truetype/wqy ]; then $(call apt-install,$(WORKPLACES)) || true; fi

# Refused before anything is set up, so with any Python there is.
bench-names:
	@$(if $(and $(ONLY),$(PYTHON)),$(PYTHON) -m lab.bench_names $(ONLY))

# What the benches compare with. Only unpacked, not installed: so no service of that name starts, and nobody's port 80 is
# taken. The bench starts it as a process of its own. In older Debians the package `nginx` has no program in it.
NGINX := .venv/nginx/usr/sbin/nginx
bench-packages: .venv/.made
	@if ! PATH="$$PATH:/usr/sbin:/sbin" command -v nginx >/dev/null && ! $(NGINX) -v 2>/dev/null; then \
	  $(call unpack,nginx nginx-light,.venv/nginx,$(NGINX) -v) || \
	    echo "!! nginx is missing, and what is compared with it is left out. Install it: sudo apt-get install nginx"; fi

# Of these packages the first after which the command works; into a folder, and without what they depend on.
define unpack
{ [ -e /etc/debian_version ] && command -v apt-get >/dev/null && \
  echo "Unpacking $(firstword $(1)) into $(2)" && rm -rf $(2) && mkdir -p $(2) && \
  { [ -z "$(ROOT)" ] || apt-get update -qq; } && \
  for package in $(1); do \
    (cd $(2) && apt-get -qq -o APT::Sandbox::User=root download $$package && \
      dpkg-deb -x $${package}_*.deb . && rm $${package}_*.deb) && $(3) 2>/dev/null && break; \
  done; $(3) 2>/dev/null; }
endef

# One after the other, when two clones on one machine set themselves up: apt waits for nobody who updates its lists.
define apt-install
{ if [ -n "$(ROOT)" ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then \
    echo "Installing $(1)"; \
    ( flock 9; apt-get update -qq 9<&- && \
      DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $(1) 9<&- >/dev/null \
    ) 9</var/lib/dpkg || { echo "!! $(1) could not be installed: what needs it is skipped."; false; }; \
  else \
    echo "!! $(1) is missing and is installed only on Debian as root: what needs it is skipped."; \
    echo "   Install it: sudo apt-get install $(1)"; false; \
  fi; }
endef

# Tests start a docker of their own. Installed only where that starts no service and takes nobody else's docker away.
DOCKER := $(if $(wildcard /run/systemd/system /usr/*bin/dockerd /usr/local/*bin/dockerd /usr/*bin/containerd),,docker.io)
# What running work in containers needs.
CONTAINERS := podman runc netavark aardvark-dns iptables busybox-static patchelf slirp4netns acl $(DOCKER)
# For the toolbox, an image to try it in, and a browser to visit it with.
WORKPLACES := chromium fonts-wqy-microhei debootstrap g++ make libkrb5-dev

# `yard` by name: a link where programs are looked for, unless another program already has the name there.
name-yard: .venv/.server
	@target="$(CURDIR)/$(BIN)/yard"; folder="$(if $(ROOT),/usr/local/bin,$(HOME)/.local/bin)"; link="$$folder/yard"; \
	there="$$(readlink "$$link" || true)"; \
	case ":$$PATH:" in *":$$folder:"*) \
	  if [ ! -e "$$link" ] || [ "$${there%/.venv/bin/yard}" != "$$there" ]; then \
	    mkdir -p "$$folder" && ln -sfn "$$target" "$$link"; \
	  fi;; \
	esac; \
	if ! [ "$$(command -v yard)" -ef "$$target" ]; then \
	  echo "To call yard by its name / 若要直接输入 yard:  export PATH=\"$(CURDIR)/$(BIN):\$$PATH\""; \
	fi
