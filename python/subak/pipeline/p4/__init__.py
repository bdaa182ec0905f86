"""A subset of P4-16 (v1model): parser, dependencies, and execution."""
