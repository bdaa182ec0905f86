"""Schemes of users in Python: the core of Subak calls these modules, users do not."""
