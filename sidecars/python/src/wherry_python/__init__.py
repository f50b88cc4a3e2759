"""The transformation Python: expressions over records, in a process of their own."""
