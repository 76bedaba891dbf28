"""Started as `python3 -I -S -E porter.py REQUEST.json` (or `fd:N`). Only finds its way to the rest of this folder."""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(_here))
__package__ = os.path.basename(_here)

if __name__ == "__main__":
    from .main import main

    main(sys.argv[1])
