"""Commands that are more than a few lines: one module each. What a command needs is imported when it runs."""
