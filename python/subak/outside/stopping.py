"""Interrupts a hook of a user's scheme that runs too long."""

from __future__ import annotations

import ctypes


class HookStopped(BaseException):
    """Raised in a hook that runs too long."""


def interrupt(thread: int, message: str) -> None:
    """Raises ``HookStopped`` in the Python code that ``thread`` runs."""
    raised = type("HookStopped", (HookStopped,), {"__str__": lambda self: message})
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(raised))
