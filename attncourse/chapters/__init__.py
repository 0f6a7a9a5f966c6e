"""One file a notebook, nNN.py, or a folder nNN where one is not enough; the catalogue finds them by that name."""
