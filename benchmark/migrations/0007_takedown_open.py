from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("benchmark", "0006_default_benchmark")]

    operations = [
        # A sentence about the column.
        migrations.AlterField(
            model_name="release",
            name="takedowns",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="of images that left the files, or of their maker's name: moment, images, "
                "open (those that open files name), software, former SHA-256",
            ),
        ),
    ]
