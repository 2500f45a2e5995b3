"""Where a record key lives: the `Index` protocol and its implementations (bucket; simple and bloom, global or not)."""
