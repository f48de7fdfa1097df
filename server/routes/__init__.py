"""What the service answers, one module a noun.

`explorations`, their `renderings` for people, the `catalogue`, its `health`, the `page`, and the `session` of a person
who has signed in. Routes are thin: they read the request and ask the rooms behind.
"""
