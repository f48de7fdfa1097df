"""What the service answers, one module a noun. Routes are thin: they read the request and ask the rooms behind."""
