"""Static files under names that carry their content's hash."""

from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFilesStorage(CompressedManifestStaticFilesStorage):
    """WhiteNoise's storage, which answers plain names as long as nothing was collected.

    So pages render in tests and checks without a `collectstatic` before them.
    """

    def stored_name(self, name: str) -> str:
        """The hashed name of a static file, or `name` itself before the first collection."""
        return super().stored_name(name) if self.hashed_files else name

    def url(self, name: str | None, force: bool = False) -> Any:
        """The address of a static file."""
        if name and not self.hashed_files:
            return self.base_url + name
        return super().url(name, force)
