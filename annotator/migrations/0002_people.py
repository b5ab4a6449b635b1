import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import annotator.models

# Version 0.1.0 stored tokens as they are, in a table of rest_framework.authtoken, and the log of
# Django's admin names a token by its text. Those that exist open the API for another year.
STORE_DIGESTS = """
INSERT INTO annotator_apitoken (user_id, name, digest, created_at, expires_at)
SELECT user_id, 'From version 0.1.0', encode(sha256(convert_to(key, 'UTF8')), 'hex'), created,
       statement_timestamp() + interval '365 days'
  FROM authtoken_token;
UPDATE django_admin_log SET object_repr = 'a token', change_message = ''
 WHERE content_type_id IN (SELECT id FROM django_content_type WHERE app_label = 'authtoken');
DROP TABLE authtoken_token;
DELETE FROM django_migrations WHERE app = 'authtoken';
"""


def store_digests(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if 'authtoken_token' in connection.introspection.table_names(cursor):
            cursor.execute(STORE_DIGESTS)


class Migration(migrations.Migration):

    dependencies = [
        ('annotator', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='theme',
            field=models.CharField(choices=[('system', 'As the system'), ('light', 'Light'), ('dark', 'Dark')], default='system', max_length=6),
        ),
        migrations.AddField(
            model_name='user',
            name='time_zone',
            field=models.CharField(default='UTC', help_text='in which pages show times', max_length=64, validators=[annotator.models.validate_time_zone]),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.CheckConstraint(condition=models.Q(('theme__in', ['system', 'light', 'dark'])), name='user_theme_known'),
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, help_text='empty where a script exchanged a name and a password for it', max_length=60)),
                ('digest', models.CharField(help_text='SHA-256, hexadecimal', max_length=64, unique=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('expires_at', models.DateTimeField()),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('name', ''), _negated=True), fields=('user', 'name'), name='api_token_name_once')],
            },
        ),
        migrations.RunPython(store_digests, migrations.RunPython.noop),
    ]
