"""The papers, and a folder for each of their experiments."""
