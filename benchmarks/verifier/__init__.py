"""Data sets, measurements and training of the local support verifier."""
