"""The same check without pytest: two processes, and what they print must be equal.

usage: python compare_printed.py; exit code 0 where the texts are equal, else 1
"""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "print_results.py"


def printed_by(name: str) -> str:
    """What a process of its own prints; how it ends is not asked."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), name], capture_output=True, text=True, check=False
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(printed_by("kernel") != printed_by("gold"))
