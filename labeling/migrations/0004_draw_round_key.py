import django.core.validators
from django.db import migrations, models

from labeling.audits.draws import KEY_BYTES


class Migration(migrations.Migration):
    dependencies = [("labeling", "0003_audits")]

    operations = [
        migrations.AddField(
            model_name="drawround",
            name="key",
            field=models.BinaryField(
                default=b"",
                help_text="what its draws are ordered by",
                max_length=KEY_BYTES,
                validators=[django.core.validators.MinLengthValidator(KEY_BYTES)],
            ),
            preserve_default=False,
        ),
        migrations.RunSQL(
            "UPDATE labeling_drawround SET key = used.key FROM labeling_drawkey used "
            "WHERE used.query_id = labeling_drawround.query_id",
            migrations.RunSQL.noop,
        ),
    ]
