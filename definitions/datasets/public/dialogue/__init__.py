"""Public dialogues."""
