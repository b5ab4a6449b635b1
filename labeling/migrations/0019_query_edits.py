import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Who wrote a query that a command imported isn't known; on a page everybody is.
IMPORTED = "UPDATE labeling_query SET imported = true WHERE created_by_id IS NULL"


class Migration(migrations.Migration):
    dependencies = [
        ("labeling", "0018_default_benchmark"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="query",
            name="imported",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="its number is a file's: an import brought it, and may change it",
            ),
        ),
        migrations.RunSQL(IMPORTED, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="QueryEdit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "changes",
                    models.JSONField(help_text="a list of field, value before, value after"),
                ),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                (
                    "made_by",
                    models.ForeignKey(
                        help_text="empty where a command made it",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="edits",
                        to="labeling.query",
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
    ]
