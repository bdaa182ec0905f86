"""A part of P4-16 (v1model): reading, what depends on what, and running it."""
