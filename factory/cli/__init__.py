"""The command line, a file per noun. `app` puts them together and turns errors into exit codes."""
