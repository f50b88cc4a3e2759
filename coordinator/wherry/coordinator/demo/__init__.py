"""`wherry demo`: the main job in one command, on real servers, with a proof at the end."""
