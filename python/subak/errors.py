"""What Subak says of an input it cannot use."""

from __future__ import annotations


class InputError(ValueError):
    """An unusable input: the file, the place in it, what is wrong there and what would be right.

    ``str(error)`` is the line that the ``subak`` command prints: ``file: place: what; mend``.
    """

    def __init__(self, file: str | None, place: str, what: str, mend: str) -> None:
        self.file = file
        """The file, or ``None`` where the input came as an object."""
        self.place = place
        """The place in the input, such as ``flows[3].path[1]`` or ``line 4, column 7``."""
        self.what = what
        """What is wrong there."""
        self.mend = mend
        """What would be right."""
        super().__init__(file, place, what, mend)

    def __str__(self) -> str:
        where = "".join(f"{part}: " for part in (self.file, self.place) if part)
        return f"{where}{self.what}; {self.mend}" if self.mend else f"{where}{self.what}"
