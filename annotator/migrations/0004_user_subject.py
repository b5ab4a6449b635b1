from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotator', '0003_backup'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='subject',
            field=models.CharField(blank=True, editable=False, help_text='the address of a provider of log-ins, a blank, and its name for them', max_length=800, null=True, unique=True),
        ),
    ]
