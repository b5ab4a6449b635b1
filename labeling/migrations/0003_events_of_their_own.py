import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# In one pass over the events, however many there are.
FILL = """
UPDATE labeling_judgmentevent event
   SET query_id = judgment.query_id, image_id = judgment.image_id, acted_at = event.made_at
  FROM labeling_judgment judgment
 WHERE judgment.id = event.judgment_id;
"""

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
APPEND_ONLY_UNDO = """
DROP TRIGGER labeling_judgmentevent_append_only ON labeling_judgmentevent;
DROP FUNCTION labeling_judgmentevent_refuse_change();
"""


class Migration(migrations.Migration):
    """An event names its query and image itself, so that it outlives a judgment taken back."""

    dependencies = [
        ('labeling', '0002_examples_preferences'),
        ('retrieval', '0002_flags'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='judgmentevent',
            name='acted_at',
            field=models.DateTimeField(help_text='when the person acted; earlier where it had to wait', null=True),
        ),
        migrations.AddField(
            model_name='judgmentevent',
            name='image',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='retrieval.image'),
        ),
        migrations.AddField(
            model_name='judgmentevent',
            name='query',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='judgment_events', to='labeling.query'),
        ),
        migrations.RunSQL(FILL),
        migrations.RemoveField(
            model_name='judgmentevent',
            name='judgment',
        ),
        migrations.AlterField(
            model_name='judgmentevent',
            name='acted_at',
            field=models.DateTimeField(help_text='when the person acted; earlier where it had to wait'),
        ),
        migrations.AlterField(
            model_name='judgmentevent',
            name='image',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='retrieval.image'),
        ),
        migrations.AlterField(
            model_name='judgmentevent',
            name='query',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='judgment_events', to='labeling.query'),
        ),
        migrations.AlterField(
            model_name='judgmentevent',
            name='annotator',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='judgmentevent',
            name='made_at',
            field=models.DateTimeField(auto_now_add=True, help_text='when it was stored'),
        ),
        migrations.AlterField(
            model_name='judgmentevent',
            name='previous',
            field=models.CharField(blank=True, choices=[('relevant', 'Relevant'), ('not_relevant', 'Not relevant'), ('unsure', 'Unsure')], help_text='what stood before; empty for none', max_length=12),
        ),
        migrations.AlterField(
            model_name='judgmentevent',
            name='relevance',
            field=models.CharField(blank=True, choices=[('relevant', 'Relevant'), ('not_relevant', 'Not relevant'), ('unsure', 'Unsure')], help_text='empty: taken back', max_length=12),
        ),
        migrations.AddIndex(
            model_name='judgmentevent',
            index=models.Index(fields=['query', 'annotator', 'id'], include=('seconds',), name='judgment_event_own'),
        ),
        migrations.AddIndex(
            model_name='judgmentevent',
            index=models.Index(fields=['image', 'query'], name='judgment_event_image'),
        ),
        migrations.RunSQL(APPEND_ONLY, APPEND_ONLY_UNDO),
    ]
