import django.db.models.deletion
from django.db import migrations, models

from labeling.queries.models import default_benchmark


class Migration(migrations.Migration):
    dependencies = [
        ("benchmark", "0005_species_run"),
        ("labeling", "0018_default_benchmark"),
    ]

    operations = [
        # Nothing changes in the database, where Django would make the foreign key anew.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="release",
                    name="benchmark",
                    field=models.ForeignKey(
                        default=default_benchmark,
                        help_text="whose queries it holds; all versions of a name are of one",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="releases",
                        to="labeling.benchmark",
                    ),
                ),
            ],
        ),
    ]
