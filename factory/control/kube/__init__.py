"""Runs on Kubernetes: what is sent to an API server, and what its answers mean for a run."""
