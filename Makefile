# `make demo` and `make test` do all their own set-up; Python >= 3.11 and make are enough.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
INSTALLED := .venv/.installed

.PHONY: demo check test private test-slow test-all chance coverage lint docs pictures film r-check audit mutations same fuzz results paper ablations ordered error-bars robustness constraints forecast claims judges models peers package wheelhouse sbom pythons release clean

demo: $(READY)
	$(BIN)/privsyn demo --out demo-output --force

# Three processes for two cores: one runs all tests that wait for a browser, a cluster, Spark or other programs, one
# after the other (tests/conftest.py). One thread each for algebra is enough: OpenMP's threads wait busily for each
# other, which triples the processor time. What one process has compiled the others read.
ALONE := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest
PYTEST := $(ALONE) -n 3 --dist loadfile --no-loadscope-reorder
PRIVATE := privsyn/private tests/private

# For every save: of each file two tests that neither fit nor draw examples.
check: $(INSTALLED)
	$(BIN)/ruff check --quiet
	$(ALONE) -n 2 --lane check tests

test: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint private
	$(PYTEST) --lane quick --hypothesis-profile=quick --durations=10 $(PRIVATE:%=--ignore=%)

# The private side is small enough to be covered whole by its own tests, branches included; compiled kernels cannot be
# traced, and are compared with slow twins instead. Other tests are not traced, which takes 1.7 times as long; `make
# coverage` traces all of them. The last line rewrites the assertions of all tests once, not once in each process.
private: $(INSTALLED)
	$(PYTEST) -n 2 --lane quick $(PRIVATE) --cov --cov-report=
	$(BIN)/coverage report --include='privsyn/private/*' --skip-covered --show-missing --fail-under=100
	$(ALONE) --lane quick --collect-only -qq >/dev/null

# What takes more than a second or two: several fits each, whole pages of examples, Spark, clusters and browsers.
test-slow: $(INSTALLED)
	$(PYTEST) --lane slow

test-all: test test-slow

# With other noise and other examples in each run, which looks for failures that the seeds of `make test` hide.
chance: $(INSTALLED)
	$(PYTEST) --lane quick --entropy --hypothesis-profile=thorough

coverage: lint
	$(PYTEST) --cov --cov-report=
	$(BIN)/coverage report --skip-covered --show-missing --fail-under=90

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/style.py

# The pages of docs/ as a site, to be read from site/index.html; and the pictures in them, drawn and taken again.
# With VERSION=0.2 the site is also committed to the local branch gh-pages, beside the versions that are there:
# `.venv/bin/mike serve` shows them, and any host of pages can serve the branch once a person has pushed it.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict --quiet
	$(if $(VERSION),PATH="$(CURDIR)/$(BIN):$$PATH" mike --quiet deploy --update-aliases "$(VERSION)" latest)
	$(if $(VERSION),PATH="$(CURDIR)/$(BIN):$$PATH" mike --quiet set-default latest)

pictures: $(INSTALLED)
	$(BIN)/python docs/tools/pictures.py
	$(BIN)/python docs/tools/screenshots.py

# 20 seconds of the app on a published survey, for the README and the first page of the site: docs/pictures/app.webp.
film: $(INSTALLED)
	$(BIN)/python docs/tools/film.py

# The package for R, as CRAN checks it, with its tests and its vignette.
r-check: $(INSTALLED)
	@command -v R >/dev/null || { echo 'install R: apt install r-base-core r-cran-reticulate r-cran-testthat r-cran-haven r-cran-rmarkdown' >&2; exit 2; }
	rm -rf .r-check && mkdir .r-check
	cd .r-check && export RETICULATE_PYTHON="$(CURDIR)/$(BIN)/python" PYTHONDONTWRITEBYTECODE=1 \
		&& R CMD build ../r && R CMD check --no-manual privsyn_*.tar.gz

# Longer forms of what `make test` has too: the audit takes one to three hours, and goes on where it was stopped
# (experiments/audit.json); the mutations take minutes. One bug by a word of its name or function:
# PYTHONPATH=tests .venv/bin/python -m mutations sampler
audit: $(INSTALLED)
	PYTHONPATH=tests $(BIN)/python -m audit docs/audit.md

mutations: $(INSTALLED)
	PYTHONPATH=tests $(BIN)/python -m mutations

# What this checkout and another commit make of the same tables must be the same bytes: make same BASE=commit,
# or a few runs alone: make same BASE=commit RUNS="linked identifiers"
same: $(INSTALLED)
	@test -n "$(BASE)" || { echo 'say with which commit to compare: make same BASE=commit' >&2; exit 2; }
	$(BIN)/python tools/same "$(BASE)" $(RUNS)

# The quick tests on Python 3.11 to 3.14 with the newest dependencies, and on the oldest with the oldest. All tests:
# make pythons TESTS='privsyn tests'. A Python that is not on PATH or in pyenv is listed as skipped; with STRICT=1
# that is an error.
pythons: export PYENV_VERSION = $(shell pyenv versions --bare 2>/dev/null | grep -E '^3\.1[1-9]\.' | paste -sd:)
pythons: export PY_DISCOVERY_TIMEOUT = 60
pythons: .nox/tool/.ready
	CI= .nox/tool/bin/nox $(if $(STRICT),--error-on-missing-interpreters) $(if $(TESTS),-- $(TESTS))

.nox/tool/.ready: pyproject.toml
	$(PYTHON) -m venv .nox/tool
	.nox/tool/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.nox/tool/bin/python -m pip install --quiet --group pythons
	touch $@

fuzz: $(INSTALLED)
	FUZZ=10000 $(BIN)/pytest tests/test_leaks.py -k fuzz

# The experiments: each writes its page in docs/ and its rows in experiments/, where it goes on if it was stopped.
# make results BENCH=folder; the others take their tables from PRIVSYN_DATA=folder (datasets/README.md).
EXPERIMENT := OPENBLAS_NUM_THREADS=1 $(BIN)/python experiments

results: $(INSTALLED)
	@test -n "$(BENCH)" || { echo 'say where the bench is: make results BENCH=folder' >&2; exit 2; }
	$(EXPERIMENT)/results.py $(BENCH)

paper ablations ordered robustness constraints forecast: $(INSTALLED)
	$(EXPERIMENT)/$@.py

# The published models of `privsyn gallery`, each made again from its public table (in PRIVSYN_DATA, or of a package).
models: export PYTHONPATH = tests
models: $(INSTALLED)
	$(EXPERIMENT)/models.py

error-bars: $(INSTALLED)
	$(EXPERIMENT)/error_bars.py --data nltcs,hmeq,hmeq:found,br2000,kc-house:found,adult --runs 20

# Which of the numbers that README and docs claim hold: a quarter of an hour, or hours with SLOW=1 (docs/claims.md).
claims: $(INSTALLED)
	$(EXPERIMENT)/claims.py $(if $(SLOW),--slow)

# Packages of others judge a synthetic Adult, each in an environment of its own, which is made once; they need an
# older Python. Some 15 minutes on two quiet cores: docs/results.md#what-packages-of-others-say.
JUDGE_PACKAGES := sdnist-2.4 sdmetrics-0.32.0 anonymeter-1.1.0
JUDGE_PYTHON ?= python3.11

judges: $(INSTALLED) $(JUDGE_PACKAGES:%=.judges/%/.ready)
	$(EXPERIMENT)/judges.py

.judges/%/.ready:
	@$(JUDGE_PYTHON) -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 12))' 2>/dev/null \
		|| { echo 'judges need Python 3.9, 3.10 or 3.11: make judges JUDGE_PYTHON=python3.10' >&2; exit 2; }
	$(JUDGE_PYTHON) -m venv .judges/$*
	.judges/$*/bin/python -m pip install --quiet '$(subst -,==,$*)'
	touch $@

# Programs of others, each in an environment of its own, for experiments/benchmark/run.py.
peers: .peers/dpmm/.ready .peers/ebm/.ready

.peers/dpmm/.ready: PEER := dpmm==0.1.9
.peers/ebm/.ready: PEER := interpret-core==0.7.8
.peers/%/.ready:
	$(PYTHON) -m venv .peers/$*
	.peers/$*/bin/python -m pip install --quiet $(PEER)
	touch $@

# Runs again only when pyproject.toml has changed. pip knows dependency groups from 25.1 on, and Python 3.11
# brings 23: the one inside .venv is upgraded, the one outside left alone.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer: make PYTHON=python3.12")'
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

# With what only tests and experiments need: Spark alone is half a gigabyte.
$(INSTALLED): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[app,dask,demo,faker,notebook,owners,plot,polars,spark]' --group dev
	touch $@

# The files for the index, the same bytes for the same commit: its time stands for that of the build.
package: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
package: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -c 'from hatchling.build import build_sdist, build_wheel; build_sdist("dist"), build_wheel("dist")'
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	ls -l dist

# The wheels of privsyn and of all that it needs, with their hashes, for a room without internet (docs/install.md).
# For another machine than this one: make wheelhouse EXTRAS=app,excel FOR="--python-version 3.13 --platform macosx_14_0_arm64"
EXTRAS ?= app

wheelhouse: package
	rm -rf wheelhouse
	$(BIN)/python tools/wheelhouse.py wheelhouse dist/*.whl "$(EXTRAS)" -- $(FOR)

# What the wheel needs at run time, as CycloneDX: from an environment in which nothing else is.
sbom: $(READY)
	$(BIN)/python tools/sbom.py dist

# What is published of this commit, in dist/: it is clean and has its tag, each file does what the README says on
# an empty machine, and SHA512SUMS lists them. Nothing is put online.
release: TAG = v$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
release:
	@test -z "$$(git status --porcelain)" || { echo 'commit first: a release is a commit' >&2; exit 2; }
	@git tag --points-at HEAD | grep -Fqx '$(TAG)' || { echo 'tag this commit first: git tag $(TAG)' >&2; exit 2; }
	$(MAKE) package
	$(BIN)/python tools/newcomer.py dist/*.whl dist/*.tar.gz
	$(MAKE) sbom
	cd dist && sha512sum * > SHA512SUMS && cat SHA512SUMS

clean:
	rm -rf dist wheelhouse .r-check .venv .judges .peers .nox demo-output site .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
