from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0006_ranking_shards")]

    operations = [
        migrations.AddField(
            model_name="textvector",
            name="unread",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="the text's end that the model doesn't read; empty where it reads all",
            ),
        ),
    ]
