import django.db.models.deletion
from django.db import migrations, models

from labeling.queries.models import default_benchmark


class Migration(migrations.Migration):
    dependencies = [
        ("labeling", "0017_screening_and_boxes"),
    ]

    operations = [
        # Nothing changes in the database, where Django would make the foreign key anew.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="query",
                    name="benchmark",
                    field=models.ForeignKey(
                        default=default_benchmark,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queries",
                        to="labeling.benchmark",
                    ),
                ),
            ],
        ),
    ]
