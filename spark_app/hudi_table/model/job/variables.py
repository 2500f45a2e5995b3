"""Environment variables with the secrets of sources: by these names alone a job, and whoever looks
at its source, gets them."""

from __future__ import annotations

SASL_USERNAME, SASL_PASSWORD = "KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"
CA, CERTIFICATE, KEY = "KAFKA_CA", "KAFKA_CLIENT_CERTIFICATE", "KAFKA_CLIENT_KEY"
"""PEM texts."""
REGISTRY_USERNAME, REGISTRY_PASSWORD = "SCHEMA_REGISTRY_USERNAME", "SCHEMA_REGISTRY_PASSWORD"
SOURCE_VARIABLES = (SASL_USERNAME, SASL_PASSWORD, CA, CERTIFICATE, KEY, REGISTRY_USERNAME, REGISTRY_PASSWORD)
"""None of them is an option of an object store."""
