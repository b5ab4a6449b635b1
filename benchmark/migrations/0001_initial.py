import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

MADE_IS_FINAL = """
CREATE FUNCTION benchmark_release_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'release % is made and never changes', OLD.id USING ERRCODE = 'check_violation';
END
$$;
CREATE TRIGGER benchmark_release_made_is_final BEFORE UPDATE ON benchmark_release
    FOR EACH ROW WHEN (OLD.made_at IS NOT NULL)
    EXECUTE FUNCTION benchmark_release_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('core', '0001_initial'),
        ('retrieval', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Release',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text="the benchmark's name", max_length=100)),
                ('version', models.PositiveIntegerField(default=1, help_text='from 1, counted within the name')),
                ('origin', models.CharField(choices=[('made', 'Made here'), ('imported', 'Imported')], default='made', max_length=10)),
                ('test_labels', models.CharField(choices=[('hidden', 'Hidden: reviewers and admins alone'), ('public', 'Public: researchers too')], default='hidden', max_length=10)),
                ('options', models.JSONField(blank=True, default=dict, help_text='chosen: rerank_model, include_images')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('made_at', models.DateTimeField(blank=True, help_text='empty until it is made', null=True)),
                ('val_queries', models.PositiveIntegerField(default=0)),
                ('test_queries', models.PositiveIntegerField(default=0)),
                ('positives', models.PositiveBigIntegerField(default=0, help_text='relevant pairs')),
                ('judgments', models.PositiveBigIntegerField(default=0, help_text='single judgments')),
                ('header', models.JSONField(blank=True, default=dict, help_text="the snapshot's header: see benchmark.releases.snapshot.snapshot")),
                ('difference', models.JSONField(blank=True, default=dict, help_text='from the version before; empty for a first version')),
                ('file_list', models.JSONField(blank=True, default=list, help_text='name, size in bytes, SHA-256 and access (open, labels) of each file')),
                ('archive', models.JSONField(blank=True, default=dict, help_text='name, size and SHA-256 of the archive of all files')),
                ('created_by', models.ForeignKey(blank=True, help_text='empty where a command made it', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('job', models.OneToOneField(blank=True, help_text='the job that makes it; empty where a command made it', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='release', to='core.job')),
                ('previous', models.ForeignKey(blank=True, help_text='the version before, which `difference` compares with', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='benchmark.release')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.CharField(choices=[('full', 'Full ranking'), ('rerank', 'Re-ranking of the fixed top 100')], default='full', max_length=10)),
                ('kind', models.CharField(choices=[('upload', 'Submitted'), ('model', 'Embedding model'), ('random', 'Random order'), ('best', 'Best possible re-rank'), ('rerank_embedding', 'Re-ranked by an embedding model'), ('rerank_multimodal', 'Re-ranked by a multimodal model')], default='upload', max_length=20)),
                ('name', models.CharField(help_text="the method's name", max_length=150)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('published_at', models.DateTimeField(blank=True, help_text='empty while private', null=True)),
                ('link', models.URLField(blank=True, max_length=500)),
                ('description', models.TextField(blank=True)),
                ('parameters', models.FloatField(blank=True, help_text='millions of parameters', null=True)),
                ('training_data', models.CharField(blank=True, max_length=300)),
                ('open_weights', models.BooleanField(blank=True, help_text='empty: not stated', null=True)),
                ('cost', models.FloatField(blank=True, help_text='US dollars for the whole run; empty: not stated', null=True)),
                ('rerank_depth', models.PositiveIntegerField(blank=True, help_text="how many of the first stage's images were re-ranked", null=True)),
                ('endpoint', models.JSONField(blank=True, default=dict, help_text='of a multimodal model: address, model, prices …')),
                ('val_queries', models.PositiveIntegerField(default=0)),
                ('test_queries', models.PositiveIntegerField(default=0)),
                ('rows', models.PositiveBigIntegerField(default=0)),
                ('depth', models.PositiveIntegerField(default=0, help_text='most images of one query')),
                ('sha256', models.CharField(blank=True, help_text='of the stored ranking', max_length=64)),
                ('ready_at', models.DateTimeField(blank=True, help_text='empty until it is scored', null=True)),
                ('embedding_model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='retrieval.embeddingmodel')),
                ('first_stage', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='second_stages', to='benchmark.run')),
                ('job', models.OneToOneField(blank=True, help_text='the job that makes or scores it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='run', to='core.job')),
                ('owner', models.ForeignKey(blank=True, help_text='empty where a command or the application made it', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to=settings.AUTH_USER_MODEL)),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='benchmark.release')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='RunScores',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('query_ids', models.JSONField(help_text='the scored queries, ascending')),
                ('measures', models.JSONField(help_text='"AP@50" and so on -> one value for each of `query_ids`')),
                ('made_at', models.DateTimeField(auto_now=True)),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='scores', to='benchmark.release')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='benchmark.run')),
            ],
            options={
                'verbose_name_plural': 'run scores',
            },
        ),
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('test_split', models.BooleanField(help_text='whether it held queries of the test split')),
                ('made_at', models.DateTimeField(auto_now_add=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='benchmark.release')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='benchmark.run')),
            ],
        ),
        migrations.CreateModel(
            name='ModelAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('endpoint', models.CharField(help_text='base address of the server', max_length=300)),
                ('model', models.CharField(help_text='as the server names it', max_length=200)),
                ('prompt_sha256', models.CharField(max_length=64)),
                ('image_sha256', models.CharField(help_text="of the image's source file, and of the size if it was sent smaller", max_length=64)),
                ('yes', models.FloatField(help_text='log-probability of yes; empty if not given', null=True)),
                ('no', models.FloatField(help_text='log-probability of no; empty if not given', null=True)),
                ('score', models.FloatField(help_text='from 0 to 1')),
                ('prompt_tokens', models.PositiveIntegerField(default=0)),
                ('completion_tokens', models.PositiveIntegerField(default=0)),
                ('answered_at', models.DateTimeField(auto_now_add=True)),
                ('image', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.image')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'model', 'prompt_sha256', 'image'), name='model_answer_once'), models.CheckConstraint(condition=models.Q(('score__range', (0, 1))), name='model_answer_score')],
            },
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.UniqueConstraint(fields=('name', 'version'), name='release_version_once'),
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='release_name_not_blank'),
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='release_version_from_1'),
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.CheckConstraint(condition=models.Q(('made_at__isnull', True), models.Q(('file_list', []), _negated=True), _connector='OR'), name='release_made_with_files'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='run_name_not_blank'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('first_stage__isnull', False), ('kind', 'best')), models.Q(('first_stage__isnull', False), ('kind__startswith', 'rerank_')), models.Q(('kind__startswith', 'rerank_'), ('task', 'rerank')), models.Q(('first_stage__isnull', True), ('kind__in', ['upload', 'model', 'random'])), _connector='OR'), name='run_first_stage_where_needed'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('parameters__isnull', True), ('parameters__range', (0, 1000000000.0)), _connector='OR'), name='run_parameters'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('cost__isnull', True), ('cost__range', (0, 1000000000.0)), _connector='OR'), name='run_cost'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'random')), fields=('release', 'task', 'kind'), name='run_random_once'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'best')), fields=('release', 'task', 'kind', 'first_stage', 'rerank_depth'), name='run_best_once'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'model')), fields=('release', 'task', 'kind', 'embedding_model'), name='run_model_once'),
        ),
        migrations.AddConstraint(
            model_name='runscores',
            constraint=models.UniqueConstraint(fields=('run', 'release'), name='run_scores_once'),
        ),
        migrations.AddIndex(
            model_name='submission',
            index=models.Index(fields=['person', '-made_at'], name='submission_person_day'),
        ),
        migrations.RunSQL(MADE_IS_FINAL),
    ]
