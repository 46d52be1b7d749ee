"""Observe: what a run says about itself while it runs. The lines are in `factory.reports`."""
