"""What the service answers, one module a noun.

`explorations` and their `renderings` for people, with the `parameters` of both, the `catalogue`, the `lessons`, its
`health`, the `page`, the `documentation`, and the `session` of a person who has signed in. Routes are thin: they read
the request, and ask the rooms behind.
"""
