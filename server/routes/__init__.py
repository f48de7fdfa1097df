"""What the service answers, one module a noun: `explorations`, the `catalogue`, its `health`, the `page`.

Routes are thin: they read the request and ask the rooms behind.
"""
