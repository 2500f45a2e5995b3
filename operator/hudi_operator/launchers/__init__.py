"""What runs a job: one Protocol, one module an implementation."""
