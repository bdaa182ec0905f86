"""What Subak says of an input it cannot use."""

from __future__ import annotations

import warnings
from collections.abc import Iterable


class InputError(ValueError):
    """An unusable input: the file, the place in it, what is wrong there and what would be right.

    ``str(error)`` is what the ``subak`` command prints: ``file: place: what; hint``, a line for each fault.
    """

    def __init__(self, file: str | None, place: str, what: str, hint: str, more: Iterable[InputError] = ()) -> None:
        self.file = file
        """The file, or ``None`` where the input came as an object."""
        self.place = place
        """The place in the input, such as ``flows[3].path[1]`` or ``line 4, column 7``."""
        self.what = what
        """What is wrong there."""
        self.hint = hint
        """What would be right."""
        self.more = tuple(more)
        """What else is wrong, in other places."""
        super().__init__(file, place, what, hint, self.more)

    @property
    def mend(self) -> str:
        """The old name of ``hint``, for one version."""
        warnings.warn(
            "mend is now called hint; the next version does not have the old name", InputWarning, stacklevel=2
        )
        return self.hint

    def each(self) -> list[InputError]:
        """Every fault, this one first."""
        return [self, *self.more]

    def line(self) -> str:
        """Its own fault alone, in one line."""
        where = "".join(f"{part}: " for part in (self.file, self.place) if part)
        return f"{where}{self.what}; {self.hint}" if self.hint else f"{where}{self.what}"

    def __str__(self) -> str:
        return "\n".join(fault.line() for fault in self.each())


class InputWarning(UserWarning):
    """What to know of how an input was read: attributes that are not read, edges that took a default."""
