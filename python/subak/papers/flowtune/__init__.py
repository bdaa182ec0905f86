"""The experiments of Flowtune."""
