import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=50)),
                ('title', models.CharField(blank=True, max_length=300)),
                ('params', models.JSONField(default=dict)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('canceled', 'Canceled')], default='queued', max_length=10)),
                ('done', models.PositiveBigIntegerField(default=0)),
                ('failed', models.PositiveBigIntegerField(default=0)),
                ('total', models.PositiveBigIntegerField(blank=True, null=True)),
                ('result', models.JSONField(default=dict)),
                ('cursor', models.JSONField(default=dict, help_text="where the next slice goes on; only the kind's handler reads it")),
                ('turn', models.PositiveBigIntegerField(default=0, help_text='slices begun; a message that names an earlier turn is stale')),
                ('fruitless_turns', models.PositiveIntegerField(default=0, help_text='slices begun since the last that ended or made progress')),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('active_seconds', models.FloatField(default=0, help_text='time spent working, without waits')),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='JobItemError',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('image_id', models.BigIntegerField(blank=True, db_index=True, help_text='the image id, where the item is an image', null=True)),
                ('item', models.CharField(max_length=500)),
                ('message', models.TextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='item_errors', to='core.job')),
            ],
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['id'], name='job_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'running', 'done', 'failed', 'canceled'])), name='job_state_known'),
        ),
        migrations.AddConstraint(
            model_name='jobitemerror',
            constraint=models.UniqueConstraint(fields=('job', 'item'), name='job_item_error_once'),
        ),
    ]
