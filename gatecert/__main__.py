"""`python -m gatecert` is the command `gatecert`."""

import sys

from gatecert.cli import main

if __name__ == "__main__":
    sys.exit(main())
