"""The pipeline as an application of spark-submit, which takes a file and no module."""

import sys

from segment_load.__main__ import main

sys.exit(main())
