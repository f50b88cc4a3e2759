"""A directory of files as a queue of work: new files become splits, large files several, finished files are moved."""
