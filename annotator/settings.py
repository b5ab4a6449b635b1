"""Settings, read from the environment; docs/operations.md documents every variable."""

import logging
import os
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import django_stubs_ext
from csp.constants import NONE, SELF

import extras
from annotator.environment import BadSetting, Environment, chosen_model, secret_key
from annotator.postgres.embedded import DATABASE
from annotator.postgres.guardian import DATABASE_USER, Layout
from core.access import Role
from core.files import close_to_others
from core.ids import LARGEST_ID
from labeling.candidates.rules import DEFAULT_RULE, parse_rule

# So that classes such as ModelAdmin can be written with their model, as their types are.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
CHECKOUT = (BASE_DIR / "manage.py").is_file()
# A wheel has the templates and static files inside this package.
FILES_DIR = BASE_DIR if CHECKOUT else BASE_DIR / "annotator" / "files"
env = Environment()
close_to_others()

# Private, also where a server under another account must be let through VAR_DIR itself.
_PRIVATE = (
    *("broker", "images", "log", "matrices", "releases"),
    *("runs", "static", "thumbnails", "uploads", "vega"),
)
_STATE = env.text("XDG_DATA_HOME", str(Path.home() / ".local" / "share"))
_USUAL_VAR_DIR = BASE_DIR / "var" if CHECKOUT else Path(_STATE) / "inquire-annotator"
VAR_DIR = env.folder("VAR_DIR", _USUAL_VAR_DIR, _PRIVATE)
DISK_MIN_FREE_BYTES = env.number("DISK_MIN_FREE_BYTES", 512 * 2**20, minimum=0, maximum=2**60)
BACKUP_DIR = env.text("BACKUP_DIR")
if BACKUP_DIR.startswith("s3:"):
    BACKUP_DIR = env.bucket("BACKUP_DIR")
BACKUP_KEEP = env.number("BACKUP_KEEP", 7, minimum=1, maximum=10_000)
BIND = env.text("BIND", "127.0.0.1")
PORT = env.number("PORT", 8000, minimum=1, maximum=65535)
# Of the web server. Each has a few threads with a connection each, of which PostgreSQL's default
# and ours allow 100 in all.
WEB_PROCESSES = env.number("WEB_PROCESSES", min(12, max(2, os.cpu_count() or 1)), minimum=1)
DEBUG = env.flag("DEBUG")
try:
    SECRET_KEY = env.text("SECRET_KEY") or secret_key(VAR_DIR / "secret_key")
except OSError as error:
    raise BadSetting(f"The secret key can't be kept in {VAR_DIR}: {error.strerror}.") from None

# Labeling.
# The model in use until an admin chooses one on the page Models; empty for the one that suits the
# workers' machines.
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL") or chosen_model(VAR_DIR)
# Below which others than admins may name a model's files.
MODELS_DIR = Path(env.text("MODELS_DIR", str(VAR_DIR / "models"))).absolute()
# Whether `manage.py encode_texts` encodes texts; else each process that needs a vector does.
TEXT_PROCESS = env.flag("TEXT_PROCESS")
# 0: as suits the device.
EMBEDDING_BATCH_SIZE = env.number("EMBEDDING_BATCH_SIZE", 0, minimum=0, maximum=4096)
EMBEDDING_READERS = env.number("EMBEDDING_READERS", 0, minimum=0, maximum=512)
# A backend of torch.compile for the image side of models.
EMBEDDING_COMPILE = env.choice(
    "EMBEDDING_COMPILE", "off", ("off", "inductor", "cudagraphs", "eager")
)
# How long torch's threads wait actively for the next step of a model. By default it is some
# milliseconds, which the decoding of the next images needs; OpenMP reads it when
# torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "5000")
IMAGE_MAX_PIXELS = env.number("IMAGE_MAX_PIXELS", 178_956_970, minimum=1)
# Of an upload of images, with what comes out of its archives.
UPLOAD_MAX_BYTES = env.number("UPLOAD_MAX_BYTES", 2**38, minimum=1, maximum=2**60)
# Of files that are made to show images; an eighth is the largest that is kept.
THUMBNAIL_CACHE_BYTES = env.number(
    "THUMBNAIL_CACHE_BYTES", 5 * 2**30, minimum=256 * 2**20, maximum=2**60
)
# Under which the web server in front sends these files, as /kept-images/.
IMAGE_REDIRECT = env.text("IMAGE_REDIRECT")
if IMAGE_REDIRECT and not (IMAGE_REDIRECT.startswith("/") and IMAGE_REDIRECT.endswith("/")):
    raise BadSetting(
        f"IMAGE_REDIRECT={IMAGE_REDIRECT}: begin and end it with a slash, as /kept-images/."
    )
S3_ENDPOINT_URL = env.address(
    "S3_ENDPOINT_URL", "", schemes=("https", "http"), example="https://s3.example.org"
)
STORAGE_URL = env.bucket("STORAGE_URL")
MATRIX = env.flag("MATRIX", default=True)
# The models whose rankings are fused into the lists of queries opened from now on; none for
# the model in use alone.
POOL_MODELS = env.words("POOL_MODELS", [])
CANDIDATE_DEPTH = env.number("CANDIDATE_DEPTH", 5000, minimum=1, maximum=1_000_000)
# By when all queries are to be complete; the dashboard compares the pace with it.
DUE_DATE = env.day("DUE_DATE")
STOP_STREAK = env.number("STOP_STREAK", 100, minimum=1, maximum=1_000_000)
MINIMUM_LABELS = env.number("MINIMUM_LABELS", 0, minimum=0, maximum=1_000_000)
ANNOTATORS_CHOOSE_ORDER = env.flag("ANNOTATORS_CHOOSE_ORDER", default=True)
LEARN_FROM_EVERYONE = env.flag("LEARN_FROM_EVERYONE")
CERTIFICATE_RECALL = env.share("CERTIFICATE_RECALL", 0.9)
CERTIFICATE_CONFIDENCE = env.share("CERTIFICATE_CONFIDENCE", 0.95)
# Of what is unjudged when a query is first handed in; 0 for no audits of releases.
RELEASE_AUDIT_SHARE = env.share("RELEASE_AUDIT_SHARE", 0.01, zero=True)
RELEASE_AUDIT_SEEDS = env.number("RELEASE_AUDIT_SEEDS", 40, minimum=0, maximum=10_000)
# Of the labels that one person alone gave to a query that is submitted: shares of the relevant and
# of the others, and how many nearest to the boundary a second person judges blindly; 0 for none.
SECOND_OPINION_POSITIVE = env.share("SECOND_OPINION_POSITIVE", 0.2, zero=True)
SECOND_OPINION_NEGATIVE = env.share("SECOND_OPINION_NEGATIVE", 0.02, zero=True)
# Of labels on species in look-alike groups, where the query is of the supercategory Species.
SECOND_OPINION_LOOKALIKE = env.share("SECOND_OPINION_LOOKALIKE", 0.1, zero=True)
SECOND_OPINION_BOUNDARY = env.number("SECOND_OPINION_BOUNDARY", 50, minimum=0, maximum=10_000)
# A query gets at least so many where it has the labels, and at most this share of its labels or the
# least number, whichever is larger.
SECOND_OPINION_LEAST = env.number("SECOND_OPINION_LEAST", 10, minimum=0, maximum=10_000)
SECOND_OPINION_MOST = env.share("SECOND_OPINION_MOST", 0.15, zero=True)
# Among so many of these one is a check, whose answer a reviewer has given; 0 for no checks.
GOLD_EVERY = env.number("GOLD_EVERY", 40, minimum=0, maximum=10_000)
# Of so many checks in a part at least this share must be answered as known, or it is proposed to
# send the part back; 0 for no proposals.
CHECKS_NEEDED = env.number("CHECKS_NEEDED", 5, minimum=1, maximum=10_000)
CHECKS_AT_LEAST = env.share("CHECKS_AT_LEAST", 0.7, zero=True)
HAND_IN_RULE = env.text("HAND_IN_RULE", DEFAULT_RULE)
try:
    parse_rule(HAND_IN_RULE)
except ValueError as error:
    raise BadSetting(f"HAND_IN_RULE: {error}") from None
HIDE_SPECIES_NAMES = env.flag("HIDE_SPECIES_NAMES")
# IUCN categories of the species whose places annotators don't see.
HIDDEN_PLACES = env.words("HIDDEN_PLACES", [])
# To how many degrees releases round the places of species of an IUCN category.
ROUNDED_PLACES = {}
for _one in env.words("ROUNDED_PLACES", []):
    _category, _, _degrees = _one.partition(":")
    try:
        ROUNDED_PLACES[_category] = float(_degrees)
    except ValueError:
        raise BadSetting(
            f"ROUNDED_PLACES: {_one} isn't a category and degrees, as EN:0.1"
        ) from None
    if not 0 < ROUNDED_PLACES[_category] <= 30:
        raise BadSetting(f"ROUNDED_PLACES: {_one} must be above 0 and at most 30 degrees")
SEARCH_EXACT_IMAGES = env.number("SEARCH_EXACT_IMAGES", 100_000, minimum=0)
SEARCH_TIMEOUT = env.number("SEARCH_TIMEOUT", 20, minimum=1, maximum=110)

# E-mails to people who label; none without a server.
EMAIL_URL = env.address(
    "EMAIL_URL",
    "",
    schemes=("smtp", "smtps", "smtp+tls", "console"),
    example="smtp+tls://user:password@mail.example.org:587",
)
_mail = urlsplit(EMAIL_URL)
if _mail.scheme == "console":
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
EMAIL_HOST = _mail.hostname or "localhost"
EMAIL_PORT = _mail.port or {"smtps": 465, "smtp+tls": 587}.get(_mail.scheme, 25)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.scheme == "smtps", _mail.scheme == "smtp+tls"
EMAIL_TIMEOUT = 5
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", "annotator@localhost")
SITE_URL = env.address(
    "SITE_URL", "", schemes=("https", "http"), example="https://annotate.example.org"
)

# Submissions to leaderboards.
RUN_MAX_BYTES = env.number("RUN_MAX_BYTES", 200 * 1024 * 1024, minimum=1)
RUN_MAX_TEXT_BYTES = env.number("RUN_MAX_TEXT_BYTES", 2**30, minimum=1)
TEST_SUBMISSIONS_PER_DAY = env.number("TEST_SUBMISSIONS_PER_DAY", 5, minimum=0)

# Re-ranking, also by multimodal models behind an address.
RERANK_MAX_DEPTH = env.number("RERANK_MAX_DEPTH", 1000, minimum=1, maximum=100_000)
MULTIMODAL_ENDPOINTS = env.addresses("MULTIMODAL_ENDPOINTS")
MULTIMODAL_API_KEY = env.text("MULTIMODAL_API_KEY")
MULTIMODAL_TIMEOUT = env.number("MULTIMODAL_TIMEOUT", 60, minimum=1, maximum=600)
MULTIMODAL_CONCURRENCY = env.number("MULTIMODAL_CONCURRENCY", 4, minimum=1, maximum=64)
MULTIMODAL_MAX_SIDE = env.number("MULTIMODAL_MAX_SIDE", 1024, minimum=32, maximum=2048)
MULTIMODAL_MAX_FAILURES = env.number("MULTIMODAL_MAX_FAILURES", 2, minimum=0, maximum=100)

# Optional capabilities: see extras/README.md.
EXTRAS = env.chosen("EXTRAS", extras.NAMES)
for _name in EXTRAS:
    if find_spec(f"extras.{_name}.settings"):
        globals().update(import_module(f"extras.{_name}.settings").settings_of(env))

INSTALLED_APPS = [
    "annotator.apps.AnnotatorConfig",
    "core",
    "curation",
    "retrieval",
    "labeling",
    "releases",
    "evaluation",
    *(f"extras.{name}" for name in EXTRAS),
    "demo",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "axes",
    "csp",
]

MIDDLEWARE = [
    "annotator.web.middleware.RequestIdMiddleware",
    "annotator.web.metrics.MetricsMiddleware",
    "annotator.web.middleware.ProbesMiddleware",
    "annotator.web.middleware.LoopbackSecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "retrieval.images.middleware.SignedImages",
    "annotator.web.middleware.PrivateMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "annotator.web.middleware.SessionOwner",
    "annotator.web.middleware.RejectUnknownParameters",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "annotator.urls"
WSGI_APPLICATION = "annotator.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FILES_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Database: DATABASE_URL, or the embedded server.
_database: dict[str, Any] = env.database("DATABASE_URL") or {
    "ENGINE": "annotator.postgres",
    "NAME": DATABASE,
    "USER": DATABASE_USER,
    "HOST": str(Layout(VAR_DIR).socket_dir),
}
# Seconds after which a silent server is considered gone.
_patience = {"connect_timeout": 5, "keepalives_idle": 30, "keepalives_interval": 10}


def _connecting(database: dict[str, Any]) -> dict[str, Any]:
    options = _patience | database.get("OPTIONS", {})
    return database | {"OPTIONS": options, "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}


DATABASES = {"default": _connecting(_database)}
# The web server's, where there is one: a PgBouncer in transaction mode, which keeps nothing of a
# session. Workers hold locks of their sessions, and connect directly.
_pool = env.database("DATABASE_POOL_URL")
DATABASE_POOL = _pool and _connecting(_pool | {"DISABLE_SERVER_SIDE_CURSORS": True})

# Tasks: a message only says "look at job N", so no result is kept and losing one loses no work.
CELERY_BROKER_URL = env.address(
    "CELERY_BROKER_URL",
    "files://localhost",
    schemes=("redis", "rediss", "redis+socket", "files"),
    example="redis://host:6379/0",
)
if CELERY_BROKER_URL.startswith("files:"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "folder": str(VAR_DIR / "broker"),
        "polling_interval": 0.1,
    }
else:
    CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3, "socket_timeout": 3}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A message that isn't taken is said again by the next sweep: no request waits long for it.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0}
CELERY_TASK_ACKS_LATE = True
# A slice of a job takes seconds, after the time to load a model; this ends one that hangs.
CELERY_TASK_TIME_LIMIT = 1800
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = 2
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]

# People.
AUTH_USER_MODEL = "annotator.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": name}
    for name in (
        "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "django.contrib.auth.password_validation.MinimumLengthValidator",
        "django.contrib.auth.password_validation.CommonPasswordValidator",
        "django.contrib.auth.password_validation.NumericPasswordValidator",
        "annotator.people.tokens.TokensEndWithPassword",
    )
]
# How long an invitation works, and a link for a forgotten password.
PASSWORD_RESET_TIMEOUT = timedelta(days=7).total_seconds()
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

# Log-in by OpenID Connect besides. OIDC_RP_… and those below are mozilla-django-oidc's; it reads
# the provider's addresses by annotator.people.oidc.
OIDC_ISSUER = env.address(
    "OIDC_ISSUER", "", schemes=("https", "http"), example="https://id.example.org"
).rstrip("/")
OIDC_RP_CLIENT_ID = env.text("OIDC_CLIENT_ID")
OIDC_RP_CLIENT_SECRET = env.text("OIDC_CLIENT_SECRET")
OIDC_ROLES = env.groups("OIDC_ROLES", Role.values)
OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", "groups")
OIDC_USERNAME_CLAIM = env.text("OIDC_USERNAME_CLAIM", "preferred_username")
OIDC_RP_SCOPES = f"openid {env.text('OIDC_SCOPES', 'profile')}"
OIDC_RP_SIGN_ALGO = "RS256"
OIDC_USE_PKCE = True
# Seconds to connect, and then for an answer.
OIDC_TIMEOUT = (2, 3)
OIDC_AUTHENTICATION_CALLBACK_URL = "oidc-callback"
if OIDC_ISSUER:
    _host = urlsplit(OIDC_ISSUER).hostname
    if OIDC_ISSUER.startswith("http:") and _host not in ("localhost", "127.0.0.1", "::1"):
        raise BadSetting("OIDC_ISSUER: only on this machine an address may begin with http://.")
    for _name in ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_ROLES"):
        if not env.text(_name):
            raise BadSetting(f"{_name} is missing, which OIDC_ISSUER needs.")
    # First: who the provider sends has typed no password, and isn't counted as if.
    AUTHENTICATION_BACKENDS.insert(0, "annotator.people.oidc.Backend")

# Wrong passwords that stop further tries, and the minutes within which they count. The first limit
# is for one who mistypes, the second for one name from many addresses, the third for many names
# from one address, of which those don't count that have logged in from there: a class behind one
# address mistypes too, and does not wait long.
LOGIN_LIMITS = [
    (counted, *limit)
    for counted, limit in zip(
        (("username", "ip_address"), ("username",), ("ip_address",)),
        env.limits("LOGIN_LIMITS", "10/15, 30/15, 100/5", 3),
        strict=True,
    )
]
AXES_HANDLER = "annotator.web.lockout.LoginLimits"
AXES_FAILURE_LIMIT = 1
AXES_COOLOFF_TIME = timedelta(minutes=max(minutes for _, _, minutes in LOGIN_LIMITS))
AXES_LOCKOUT_PARAMETERS = [parameters for parameters, _, _ in LOGIN_LIMITS]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_LOCKOUT_CALLABLE = "annotator.web.lockout.lockout_response"
AXES_CLIENT_IP_CALLABLE = "annotator.web.lockout.client_address"
AXES_CLIENT_STR_CALLABLE = "annotator.web.lockout.logged_client"
AXES_VERBOSE = False
AXES_DISABLE_ACCESS_LOG = True

# Browsers. Everything but this machine's own loopback address is held to HTTPS.
HTTPS_ONLY = env.flag("HTTPS_ONLY", default=True)
TRUST_PROXY = env.flag("TRUST_PROXY")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", [])
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = HTTPS_ONLY
SECURE_REDIRECT_EXEMPT = [r"^(healthz(/web)?|metrics)$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS_ONLY else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS_ONLY
SECURE_HSTS_PRELOAD = HTTPS_ONLY
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SESSION_COOKIE_SECURE = HTTPS_ONLY
CSRF_COOKIE_SECURE = HTTPS_ONLY
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# The middleware that the check asks for by name is LoopbackSecurityMiddleware's base class.
SILENCED_SYSTEM_CHECKS = ["security.W001"]

# A CSV of queries may have 5 MB, also as the whole body of a request.
DATA_UPLOAD_MAX_MEMORY_SIZE = 6 * 1024 * 1024
# Runs are the largest files that are sent.
FILE_UPLOAD_HANDLERS = [
    "annotator.web.bodies.SizeLimit",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]
# A species filter is one field a species, and a family of plants has thousands.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000

# Static files, collected by `serve`.
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "annotator.web.static.VegaFinder",
]
STATICFILES_DIRS = [FILES_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "core.bucket.Bucket" if STORAGE_URL else "core.storage.Disk"},
    "staticfiles": {"BACKEND": "annotator.web.static.StaticFilesStorage"},
}

# Requests by one API token; browsers' sessions have no limit, so that labeling never waits for one.
API_RATE = env.rate("API_RATE")
REST_FRAMEWORK = {
    # Token first: its WWW-Authenticate header makes an anonymous request a 401, not a 403.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "annotator.people.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["core.api.permissions.TakesPartInLabeling"],
    "DEFAULT_THROTTLE_CLASSES": ["annotator.people.tokens.TokenRate"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["annotator.web.bodies.JSONParser"],
    "DEFAULT_PAGINATION_CLASS": "annotator.web.pagination.Pagination",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "annotator.web.problems.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "URL_FORMAT_OVERRIDE": None,
    # The description at /api/schema/ tells what OPTIONS would.
    "DEFAULT_METADATA_CLASS": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Inquire Annotator",
    "DESCRIPTION": "Build expert-level text-to-image retrieval benchmarks.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/",
    # What may be blank differs between what is sent and what is answered.
    "COMPONENT_SPLIT_REQUEST": True,
    "PATH_CONVERTER_OVERRIDES": {
        "id": {"type": "integer", "format": "int64", "minimum": 0, "maximum": LARGEST_ID}
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "annotator.web.openapi.describe_problems",
    ],
    "ENUM_NAME_OVERRIDES": {
        "QueryState": "labeling.queries.models.Query.State",
        "JobState": "core.jobs.models.Job.State",
        "FlagKind": "retrieval.flags.models.ImageFlag.Kind",
        "Relevance": "labeling.judging.models.Relevance",
        "JudgmentSource": "labeling.judging.sources.SOURCE_CHOICES",
        "RejectReason": "labeling.queries.models.Query.RejectReason",
        "QuerySplit": "labeling.queries.models.Query.Split",
        "RunKind": "evaluation.runs.models.Run.Kind",
        "SubmittedSplit": "evaluation.runs.forms.SPLIT_CHOICES",
        "ListState": ["none", "building", "ready", "failed"],
        "SpeciesGroupKind": "retrieval.species.groups.GroupKind",
        "SearchMethod": ["matrix", "scan", "index"],
        "CustomFieldKind": "retrieval.corpus.models.CustomField.Kind",
    },
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True


def _worth_logging(record: logging.LogRecord) -> bool:
    """Not the dozen lines in which open_clip tells how it loads a model."""
    return record.levelno >= logging.WARNING or "open_clip" not in record.pathname


LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "filters": {
        "worth": {"()": "django.utils.log.CallbackFilter", "callback": _worth_logging},
        "ids": {"()": "core.log_lines.Ids"},
    },
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s%(ids)s: %(message)s"},
        "json": {"()": "core.log_lines.JsonLines"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": env.choice("LOG_FORMAT", "line", ("line", "json")),
            "filters": ["worth", "ids"],
        }
    },
    "root": {"handlers": ["console"], "level": env.choice("LOG_LEVEL", "INFO", LOG_LEVELS)},
    "loggers": {
        "django": {"handlers": [], "propagate": True},
        "gunicorn.error": {"handlers": [], "propagate": True},
        # Of each visitor who leaves it writes the address, and of each request that waits a line.
        "waitress": {"level": "WARNING"},
        "waitress.queue": {"level": "ERROR"},
        # Of an answer 4xx it writes the address, which may be somebody's link for a new password.
        "django.request": {"level": "ERROR"},
        # They log each request, at the level DEBUG with the whole image.
        "openai": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
    },
}
# Those of the environment, and whether each is set: the page of settings shows them.
VARIABLES = env.read
