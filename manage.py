#!/usr/bin/env python
"""The command line of a checkout; installed, it is `inquire-annotator`."""

from annotator.__main__ import main

if __name__ == "__main__":
    main()
