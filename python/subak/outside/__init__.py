"""Schemes that users write in Python. Subak's core calls these modules; users do not."""
