import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Workers know their shards by their settings. The version before still reads the table, which
    goes with the next release; nothing in it may keep a model from being deleted.
    """

    dependencies = [("sharding", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="rankingshard",
            name="model",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="shards",
                to="retrieval.embeddingmodel",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="RankingShard")]
        ),
    ]
