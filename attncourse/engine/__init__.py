"""What happens to an answer of any exercise: it is run, compared, explained, located and described."""
