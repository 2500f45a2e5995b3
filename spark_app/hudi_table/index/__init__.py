"""Where a record key lives: the `Index` protocol and its implementations (bucket, simple, global simple)."""
