"""What exists: datasets, mixes, jobs, clusters. Empty: workers import it without Dagster."""
