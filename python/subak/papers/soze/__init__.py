"""The experiments of Soze."""
