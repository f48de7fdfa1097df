"""What the service answers, one module a noun.

`explorations`, the `catalogue`, its `health`, the `page`, and the `session` of a person who has signed in.
Routes are thin: they read the request and ask the rooms behind.
"""
