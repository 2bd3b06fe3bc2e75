"""Reads result files of rbench into pandas frames.

    import rbench
    operations = rbench.frame("monday.json", "tuesday.json")
    slices = rbench.frame("monday.json", form="csv-intervals")

The columns are those of `rbench show --format FORM`; docs/reference/show.md of the project describes them.
"""

import io
import os
import shutil
import subprocess
import sys

FORMS = ("csv", "csv-hosts", "csv-intervals")


def program():
    """Returns the rbench that belongs to this Python, or else the one in PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "rbench")
    found = beside if os.access(beside, os.X_OK) else shutil.which("rbench")
    if found is None:
        raise FileNotFoundError("rbench is neither beside this Python nor in PATH")
    return found


def frame(*files, form="csv"):
    """Returns the rows of result files (of finished runs, or journals) as a pandas DataFrame."""
    import pandas

    if form not in FORMS:
        raise ValueError(f"form {form!r}: not one of {', '.join(FORMS)}")
    command = [program(), "show", "--format", form, *map(os.fspath, files)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise ValueError(shown.stderr.strip())
    return pandas.read_csv(io.StringIO(shown.stdout))
