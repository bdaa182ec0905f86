"""``python -m subak``: the ``subak`` command."""

from subak.cli import main

if __name__ == "__main__":
    main()
