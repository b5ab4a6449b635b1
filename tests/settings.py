"""The application's settings, over state folders of the test session's own.

One PostgreSQL server serves the whole session. Each process of pytest-xdist has a state folder and
databases of its own beside it; without pytest-xdist there is one such process.
"""

import os
import tempfile
from pathlib import Path

for variable in ("DATABASE_URL", "CELERY_BROKER_URL", "PORT", "SECRET_KEY", "ALLOWED_HOSTS"):
    os.environ.pop(variable, None)
if "INQUIRE_TESTS_DIR" not in os.environ:
    os.environ["INQUIRE_TESTS_DIR"] = tempfile.mkdtemp(prefix="inquire-tests-")
#: The folder of the session; its PostgreSQL server's state folder.
SESSION_DIR = Path(os.environ["INQUIRE_TESTS_DIR"])
# Pytest closes the folder of a user's sessions to other accounts, such as PostgreSQL's, when one
# begins: each has its own.
os.environ["PYTEST_DEBUG_TEMPROOT"] = str(SESSION_DIR)
#: This process's name among those of the session.
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["VAR_DIR"] = str(SESSION_DIR / PROCESS)
# Django's test client speaks plain HTTP to a host that is not the loopback address.
os.environ["HTTPS_ONLY"] = "false"
os.environ["LOG_LEVEL"] = "WARNING"
# Nobody asks the hub of models; a test with a stand-in for it says so.
os.environ["HF_HUB_OFFLINE"] = "1"
# Playwright keeps an event loop in the thread of the tests, where Django then refuses its database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

from annotator.postgres.guardian import Layout  # noqa: E402
from annotator.settings import *  # noqa: E402, F403
from annotator.settings import DATABASES  # noqa: E402

DATABASES["default"] |= {
    "ENGINE": "django.db.backends.postgresql",
    "HOST": str(Layout(SESSION_DIR).socket_dir),
}
# What a hand-in draws at random is for the tests of it alone.
RELEASE_AUDIT_SHARE = 0.0
SECOND_OPINION_POSITIVE = SECOND_OPINION_NEGATIVE = SECOND_OPINION_LOOKALIKE = 0.0
SECOND_OPINION_BOUNDARY = GOLD_EVERY = 0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
