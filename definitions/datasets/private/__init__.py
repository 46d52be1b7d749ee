"""Datasets that only permitted identities may read. Data governance reviews this folder."""
