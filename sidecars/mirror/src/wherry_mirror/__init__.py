"""The plugin `mirror`: MirrorMaker 2's connectors."""
