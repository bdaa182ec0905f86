"""Errors and warnings about inputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable


class InputError(ValueError):
    """Error of an unusable input, with the file, the place in it, the problem and a hint.

    ``str(error)`` is what the ``subak`` command prints: ``file: place: what; hint``, one line for each error.
    """

    def __init__(self, file: str | None, place: str, what: str, hint: str, more: Iterable[InputError] = ()) -> None:
        self.file = file
        """The file, or ``None`` if the input is an object."""
        self.place = place
        """The place in the input, such as ``flows[3].path[1]`` or ``line 4, column 7``."""
        self.what = what
        """Description of the problem."""
        self.hint = hint
        """The hint: a valid value, or the next step."""
        self.more = tuple(more)
        """Further errors, at other places."""
        super().__init__(file, place, what, hint, self.more)

    @property
    def mend(self) -> str:
        """The old name of ``hint``, for one version."""
        warnings.warn(
            "mend is now called hint; the next version does not have the old name", InputWarning, stacklevel=2
        )
        return self.hint

    def each(self) -> list[InputError]:
        """All errors of the input, this one first."""
        return [self, *self.more]

    def line(self) -> str:
        """Only this error, without the further ones, in one line."""
        where = "".join(f"{part}: " for part in (self.file, self.place) if part)
        return f"{where}{self.what}; {self.hint}" if self.hint else f"{where}{self.what}"

    def __str__(self) -> str:
        return "\n".join(fault.line() for fault in self.each())


class InputWarning(UserWarning):
    """Warning about how an input was read: ignored attributes, edges with a default."""
