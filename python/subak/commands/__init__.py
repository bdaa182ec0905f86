"""Commands of more than a few lines, one module each. Modules that a command needs are imported when it runs."""
