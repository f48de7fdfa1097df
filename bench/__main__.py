"""`python -m bench` is `fusionscope bench`."""

import sys

from bench.cli import main

sys.exit(main())
