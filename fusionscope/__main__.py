"""`python -m fusionscope`: the command line, for an interpreter whose scripts are not on the PATH."""

from __future__ import annotations

from server.cli import main

if __name__ == "__main__":
    main()
