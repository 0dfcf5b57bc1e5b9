"""What the pipeline sets, so that a run by hand behaves like one of its own."""

import os

os.environ.setdefault("CI", "true")
