"""Drawing of scenes as SVG, and their rasterisation."""
