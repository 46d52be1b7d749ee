"""Public conversations in which tools are used."""
