"""Place and season in a model: embeddings of an image and of where and when it was taken."""

from django.apps import AppConfig


class ContextConfig(AppConfig):
    """Registers the kind of model."""

    name = "extras.context"

    def ready(self) -> None:
        """Append to the registries."""
        from extras.context.model_folder import base_of_context
        from retrieval.encoding.model_specs import BASES

        BASES.append(base_of_context)
