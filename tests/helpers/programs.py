"""Python programs in processes of their own: for what an environment variable, a limit or an import decides."""

import os
import subprocess
import sys
from pathlib import Path

THREAD_COUNTS = ("ONNXPOOL_NUM_THREADS", "OMP_NUM_THREADS")
LIMIT = 300  # seconds after which a program that hangs is ended
HELPERS = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "oracle")]


def launch(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with warnings as errors, without the caller's thread counts and with these environment variables.

    The program can import the helpers of tests.
    """
    clean = {name: value for name, value in os.environ.items() if name not in THREAD_COUNTS}
    clean["PYTHONPATH"] = os.pathsep.join([*HELPERS, *filter(None, [clean.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**clean, **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def program(text: str, **variables: str) -> str:
    """What a program prints, which must end well and write no error.

    libgomp itself warns of a count that it cannot read when it is loaded, which no library can prevent.
    """
    run = launch("-c", text, **variables)
    errors = [line for line in run.stderr.splitlines() if line and not line.startswith("libgomp: Invalid value")]
    assert (run.returncode, errors) == (0, []), run.stderr
    return run.stdout.strip()
