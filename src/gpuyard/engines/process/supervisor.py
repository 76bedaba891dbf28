"""Started as `python -I -S supervisor.py FOLDER`. Only finds its way to `supervision`, so that the rest is loaded from
compiled files."""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
__package__ = "engines.process"

if __name__ == "__main__":
    from .supervision.main import main

    main(sys.argv[1])
