"""Django's PostgreSQL backend on the embedded server, which a connection starts if need be."""

from typing import Any

import psycopg2
from django.conf import settings
from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from annotator.postgres.embedded import embedded_postgres
from annotator.postgres.guardian import EmbeddedPostgresError


class DatabaseWrapper(base.DatabaseWrapper):
    """Starts the server when a new connection finds none."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect; a server that was killed is started and has recovered before we return."""
        server = embedded_postgres(settings.VAR_DIR)
        server.enter()
        try:
            return super().get_new_connection(conn_params)
        except psycopg2.OperationalError:
            try:
                server.ensure()
            except EmbeddedPostgresError as error:
                raise OperationalError(str(error)) from error
            return super().get_new_connection(conn_params)
