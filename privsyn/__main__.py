"""Run the command line as ``python -m privsyn``."""

import sys

from privsyn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
