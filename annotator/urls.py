"""Every address of the application."""

from importlib.util import find_spec

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path, register_converter
from drf_spectacular.views import SpectacularAPIView

from annotator.log.views import log, log_csv
from annotator.manage import views as manage
from annotator.manage.api import BackupsView, SettingsView
from annotator.people import oidc
from annotator.people import views as people
from annotator.people.api import TokenView
from annotator.web.health import healthz, web_health
from annotator.web.metrics import MetricsView
from core.api.markdown import MarkdownView
from core.ids import IdConverter

register_converter(IdConverter, "id")

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("healthz/web", web_health, name="healthz-web"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("oidc/", oidc.LogInView.as_view(), name="oidc-log-in"),
    path("oidc/callback/", oidc.CallbackView.as_view(), name="oidc-callback"),
    path("admin/", admin.site.urls),
    path("account/", people.account, name="account"),
    path("account/password/", people.PasswordView.as_view(), name="account-password"),
    path("account/mail/", people.account_mail, name="account-mail"),
    path("account/tokens/", people.account_tokens, name="account-tokens"),
    path("account/tokens/<id:pk>/revoke/", people.token_revoke, name="account-token-revoke"),
    path("password/<uidb64>/<token>/", people.PasswordLinkView.as_view(), name="password-link"),
    path("first-admin/<token>/", people.first_admin, name="first-admin"),
    path("people/", people.people, name="people"),
    path("people/<id:pk>/", people.person, name="person"),
    path("people/<id:pk>/link/", people.person_link, name="person-link"),
    path("people/<id:pk>/deactivate/", people.person_deactivate, name="person-deactivate"),
    path("people/<id:pk>/reactivate/", people.person_reactivate, name="person-reactivate"),
    path("people/<id:pk>/leave/", people.person_leave, name="person-leave"),
    path("log/", log, name="log"),
    path("log.csv", log_csv, name="log-csv"),
    path("manage/", manage.manage, name="manage"),
    path("manage/backup/", manage.backup_now, name="manage-backup"),
    path("manage/jobs/", manage.jobs, name="manage-jobs"),
    path("manage/settings/", manage.settings_page, name="manage-settings"),
    path("api/backups/", BackupsView.as_view(), name="api-backups"),
    path("api/settings/", SettingsView.as_view(), name="api-settings"),
    path("api/token/", TokenView.as_view(), name="api-token"),
    path("api/markdown/", MarkdownView.as_view(), name="api-markdown"),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/", include("retrieval.api_urls")),
    path("api/", include("labeling.api_urls")),
    path("api/", include("releases.api_urls")),
    path("api/", include("evaluation.api_urls")),
    path("", include("retrieval.urls")),
    path("", include("labeling.urls")),
    path("", include("releases.urls")),
    path("", include("evaluation.urls")),
    *(
        path("", include(f"extras.{name}.urls"))
        for name in settings.EXTRAS
        if find_spec(f"extras.{name}.urls")
    ),
]

handler400 = "annotator.web.problems.bad_request"
handler403 = "annotator.web.problems.permission_denied"
handler404 = "annotator.web.problems.page_not_found"
handler500 = "annotator.web.problems.server_error"
