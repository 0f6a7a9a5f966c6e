"""How an answer is run, compared, explained and told, whichever exercise it belongs to."""
