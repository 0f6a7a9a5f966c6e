"""Bug clinic: modules with one bug each."""
