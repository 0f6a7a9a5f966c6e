"""A real model: heads of a model that others trained."""
