"""The papers' experiments, one folder each."""
