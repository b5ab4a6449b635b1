"""Scripts that train the demo's model, score it and damage copies of it.

The wheel has none of them: run them from a checkout, as `python -m demo.training.train`. Importing
one sets up Django.
"""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
django.setup()
