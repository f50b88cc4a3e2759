"""What the coordinator does, told as text files."""
