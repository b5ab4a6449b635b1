from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0002_corrections")]

    operations = [
        migrations.AddField(
            "blinditem",
            "used_up_at",
            models.DateTimeField(
                null=True,
                help_text="of a check: when its person's part was sent back for those they missed",
            ),
        ),
    ]
