"""Program a head: set its matrices by hand."""
