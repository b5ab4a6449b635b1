import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import pgvector.django.halfvec
from django.conf import settings
from django.db import migrations, models

# The one change that is let through is Django's SET_NULL when a candidate list is deleted.
APPEND_ONLY = """
CREATE FUNCTION labeling_judgmentevent_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.candidate_list_id IS NULL THEN
        OLD.candidate_list_id := NULL;
        IF NEW IS NOT DISTINCT FROM OLD THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'judgment event % is history and never changes', OLD.id
        USING ERRCODE = 'check_violation';
END
$$;
CREATE TRIGGER labeling_judgmentevent_append_only BEFORE UPDATE OR DELETE ON labeling_judgmentevent
    FOR EACH ROW EXECUTE FUNCTION labeling_judgmentevent_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('annotator', '0001_initial'),
        ('core', '0001_initial'),
        ('retrieval', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='LabelingPreferences',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='labeling_preferences', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('keys', models.JSONField(default=dict, help_text='action -> list of keys, for the actions that differ from default')),
                ('view', models.JSONField(default=dict, help_text='view, grid size, brightness, open panels …')),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name_plural': 'labeling preferences',
            },
        ),
        migrations.CreateModel(
            name='CandidateList',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model_name', models.CharField(help_text='name of the requested embedding model', max_length=300)),
                ('text', models.CharField(max_length=500)),
                ('species_ids', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, help_text='sorted; empty for the whole corpus', size=None)),
                ('depth', models.PositiveIntegerField(help_text='how many candidates were requested')),
                ('size', models.PositiveIntegerField(default=0, help_text='how many it holds')),
                ('total', models.PositiveBigIntegerField(default=0, help_text='embedded images within the filter when it was frozen')),
                ('unembedded', models.PositiveBigIntegerField(default=0, help_text='images within the filter that had no embedding yet')),
                ('text_vector', pgvector.django.halfvec.HalfVectorField(null=True)),
                ('frozen_at', models.DateTimeField(help_text='empty until it is ready', null=True)),
                ('checksum', models.CharField(blank=True, help_text='SHA-256 over image ids and scores in order', max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('embedding_model', models.ForeignKey(help_text='empty until it is ready: only the worker loads the model', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='retrieval.embeddingmodel')),
                ('job', models.ForeignKey(help_text='the job that last worked on it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='core.job')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Query',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('query_id', models.PositiveIntegerField(help_text='the number that the CSV files carry', unique=True)),
                ('text', models.CharField(max_length=500)),
                ('category', models.CharField(choices=[('Health and Disease', 'Health and Disease'), ('Life Cycle and Development', 'Life Cycle and Development'), ('Sex identification', 'Sex identification'), ('Tracking and Identification', 'Tracking and Identification'), ('Unique appearances or morphs', 'Unique appearances or morphs'), ('Cooperative and Social Behaviors', 'Cooperative and Social Behaviors'), ('Defensive and Survival Behaviors', 'Defensive and Survival Behaviors'), ('Feeding and Hydration', 'Feeding and Hydration'), ('Mating, Courtship, Reproduction', 'Mating, Courtship, Reproduction'), ('Miscellaneous Behavior', 'Miscellaneous Behavior'), ('Animal Structures and Habitats', 'Animal Structures and Habitats'), ('Collected Specimens', 'Collected Specimens'), ('Human Impact', 'Human Impact'), ('Miscellaneous Context', 'Miscellaneous Context'), ('Parasitism and Symbiosis', 'Parasitism and Symbiosis'), ('Species ID', 'Species ID')], max_length=60)),
                ('iconic_group', models.CharField(blank=True, max_length=40)),
                ('split', models.CharField(choices=[('val', 'Validation'), ('test', 'Test')], max_length=4)),
                ('split_settled', models.BooleanField(default=False, help_text='drawn, or named by a person or a file; kept when the split of others is drawn')),
                ('scientific_terms', models.BooleanField(default=False, help_text='the text uses terms that only an expert knows')),
                ('guidelines', models.TextField(blank=True)),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('open', 'Open'), ('submitted', 'Submitted'), ('complete', 'Complete'), ('rejected', 'Rejected')], default='draft', max_length=10)),
                ('reject_reason', models.CharField(blank=True, choices=[('too_easy', 'Too easy'), ('not_comprehensive', "Can't be labeled comprehensively"), ('unlabelable', "Can't be labeled from images"), ('other', 'Other')], max_length=20)),
                ('reject_note', models.TextField(blank=True)),
                ('left_open', models.TextField(blank=True, help_text='what was unmet, unsure or disputed when it was completed')),
                ('completion_reason', models.TextField(blank=True, help_text='why it was completed nevertheless')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('current_list', models.ForeignKey(blank=True, help_text='the list that is labeled or is being made', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='labeling.candidatelist')),
                ('species', models.ManyToManyField(blank=True, related_name='queries', to='retrieval.species')),
            ],
            options={
                'verbose_name_plural': 'queries',
                'ordering': ['query_id'],
            },
        ),
        migrations.CreateModel(
            name='JudgmentEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('client_id', models.UUIDField(help_text='made by the client, so that a repeat counts once')),
                ('previous', models.CharField(blank=True, choices=[('relevant', 'Relevant'), ('not_relevant', 'Not relevant'), ('unsure', 'Unsure')], help_text='the judgment before; empty for none', max_length=12)),
                ('relevance', models.CharField(blank=True, choices=[('relevant', 'Relevant'), ('not_relevant', 'Not relevant'), ('unsure', 'Unsure')], help_text='empty where the judgment was taken back', max_length=12)),
                ('source', models.CharField(choices=[('list', 'Candidate list'), ('search', 'Search'), ('similar', 'More like this'), ('import', 'Import')], max_length=10)),
                ('rank', models.PositiveIntegerField(blank=True, null=True)),
                ('seconds', models.FloatField(default=0)),
                ('acted_at', models.DateTimeField(help_text='when the person acted; earlier where it had to wait')),
                ('made_at', models.DateTimeField(auto_now_add=True, help_text='when it was stored')),
                ('annotator', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('candidate_list', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='labeling.candidatelist')),
                ('image', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='retrieval.image')),
                ('query', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='judgment_events', to='labeling.query')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Judgment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('relevance', models.CharField(choices=[('relevant', 'Relevant'), ('not_relevant', 'Not relevant'), ('unsure', 'Unsure')], max_length=12)),
                ('source', models.CharField(choices=[('list', 'Candidate list'), ('search', 'Search'), ('similar', 'More like this'), ('import', 'Import')], default='list', max_length=10)),
                ('rank', models.PositiveIntegerField(blank=True, help_text='in that list, from 1', null=True)),
                ('seconds', models.FloatField(default=0, help_text='active time spent on it, all changes together')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='judgments', to=settings.AUTH_USER_MODEL)),
                ('candidate_list', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='labeling.candidatelist')),
                ('image', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='judgments', to='retrieval.image')),
                ('query', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='judgments', to='labeling.query')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.AddField(
            model_name='candidatelist',
            name='query',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lists', to='labeling.query'),
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('handed_in_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('rule', models.CharField(blank=True, choices=[('streak', 'Stop rule met'), ('exhausted', 'List exhausted')], help_text='the stop rule that was met; empty for none', max_length=10)),
                ('reason', models.CharField(blank=True, choices=[('too_easy', 'Too easy'), ('not_comprehensive', "Can't be labeled comprehensively"), ('unlabelable', "Can't be labeled from images"), ('other', 'Other')], help_text="why the person gave the query up; empty where they didn't", max_length=20)),
                ('note', models.TextField(blank=True)),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to=settings.AUTH_USER_MODEL)),
                ('query', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='labeling.query')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='QueryExample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('relevant', models.BooleanField()),
                ('note', models.CharField(blank=True, help_text='why, for annotators', max_length=500)),
                ('pinned_at', models.DateTimeField(auto_now_add=True)),
                ('image', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.image')),
                ('pinned_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('query', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='examples', to='labeling.query')),
            ],
            options={
                'ordering': ['-relevant', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='QueryTransition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('from_state', models.CharField(choices=[('draft', 'Draft'), ('open', 'Open'), ('submitted', 'Submitted'), ('complete', 'Complete'), ('rejected', 'Rejected')], max_length=10)),
                ('to_state', models.CharField(choices=[('draft', 'Draft'), ('open', 'Open'), ('submitted', 'Submitted'), ('complete', 'Complete'), ('rejected', 'Rejected')], max_length=10)),
                ('reason', models.CharField(blank=True, choices=[('too_easy', 'Too easy'), ('not_comprehensive', "Can't be labeled comprehensively"), ('unlabelable', "Can't be labeled from images"), ('other', 'Other')], max_length=20)),
                ('note', models.TextField(blank=True)),
                ('made_at', models.DateTimeField(auto_now_add=True)),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('query', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='transitions', to='labeling.query')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Candidate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rank', models.PositiveIntegerField()),
                ('score', models.FloatField()),
                ('image', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.image')),
                ('list', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='candidates', to='labeling.candidatelist')),
            ],
            options={
                'ordering': ['list', 'rank'],
                'constraints': [models.UniqueConstraint(fields=('list', 'rank'), name='candidate_rank_unique'), models.UniqueConstraint(fields=('list', 'image'), name='candidate_image_unique'), models.CheckConstraint(condition=models.Q(('rank__gte', 1)), name='candidate_rank_from_1')],
            },
        ),
        migrations.AddConstraint(
            model_name='query',
            constraint=models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='query_text_not_blank'),
        ),
        migrations.AddConstraint(
            model_name='query',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['draft', 'open', 'submitted', 'complete', 'rejected'])), name='query_state_known'),
        ),
        migrations.AddConstraint(
            model_name='query',
            constraint=models.CheckConstraint(condition=models.Q(('split__in', ['val', 'test'])), name='query_split_known'),
        ),
        migrations.AddConstraint(
            model_name='query',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('reject_reason__gt', ''), ('state', 'rejected')), models.Q(models.Q(('state', 'rejected'), _negated=True), ('reject_reason', '')), _connector='OR'), name='query_rejected_with_reason'),
        ),
        migrations.AddConstraint(
            model_name='query',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completion_reason', ''), ('left_open', '')), models.Q(('completion_reason__gt', ''), ('left_open__gt', ''), ('state', 'complete')), _connector='OR'), name='query_left_open_with_reason'),
        ),
        migrations.AddIndex(
            model_name='judgmentevent',
            index=models.Index(fields=['query', 'annotator', 'id'], include=('seconds',), name='judgment_event_own'),
        ),
        migrations.AddIndex(
            model_name='judgmentevent',
            index=models.Index(fields=['image', 'query'], name='judgment_event_image'),
        ),
        migrations.AddConstraint(
            model_name='judgmentevent',
            constraint=models.UniqueConstraint(fields=('annotator', 'client_id'), name='judgment_event_client_once'),
        ),
        migrations.AddConstraint(
            model_name='judgmentevent',
            constraint=models.CheckConstraint(condition=models.Q(('seconds__range', (0, 1000000000.0))), name='judgment_event_seconds'),
        ),
        migrations.AddIndex(
            model_name='judgment',
            index=models.Index(fields=['query', 'annotator', 'image'], name='judgment_query_annotator'),
        ),
        migrations.AddIndex(
            model_name='judgment',
            index=models.Index(fields=['query', '-updated_at'], name='judgment_query_recent'),
        ),
        migrations.AddConstraint(
            model_name='judgment',
            constraint=models.UniqueConstraint(fields=('query', 'image', 'annotator'), name='judgment_once_per_annotator'),
        ),
        migrations.AddConstraint(
            model_name='judgment',
            constraint=models.CheckConstraint(condition=models.Q(('relevance__in', ['relevant', 'not_relevant', 'unsure'])), name='judgment_relevance_known'),
        ),
        migrations.AddConstraint(
            model_name='judgment',
            constraint=models.CheckConstraint(condition=models.Q(('seconds__range', (0, 1000000000.0))), name='judgment_seconds'),
        ),
        migrations.AddConstraint(
            model_name='candidatelist',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('frozen_at__isnull', True), ('size', 0)), models.Q(('checksum__gt', ''), ('embedding_model__isnull', False), ('frozen_at__isnull', False), ('text_vector__isnull', False)), _connector='OR'), name='candidate_list_frozen_whole'),
        ),
        migrations.AddConstraint(
            model_name='candidatelist',
            constraint=models.CheckConstraint(condition=models.Q(('size__lte', models.F('total'))), name='candidate_list_size_in_total'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('query', 'annotator'), name='assignment_once_per_annotator'),
        ),
        migrations.AddConstraint(
            model_name='queryexample',
            constraint=models.UniqueConstraint(fields=('query', 'image'), name='query_example_once'),
        ),
        migrations.RunSQL(APPEND_ONLY),
    ]
