"""One token at a time: decoding, and its cache."""
