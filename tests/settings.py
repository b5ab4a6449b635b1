"""The application's settings over a state folder of the test session's own."""

import os
import tempfile

for variable in ("DATABASE_URL", "CELERY_BROKER_URL", "PORT", "SECRET_KEY", "ALLOWED_HOSTS"):
    os.environ.pop(variable, None)
os.environ["VAR_DIR"] = tempfile.mkdtemp(prefix="inquire-tests-")
# Django's test client speaks plain HTTP to a host that is not the loopback address.
os.environ["HTTPS_ONLY"] = "false"
os.environ["LOG_LEVEL"] = "WARNING"

from annotator.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
