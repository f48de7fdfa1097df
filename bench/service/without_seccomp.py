"""Takes seccomp away in the process that imports this: for `attacks`, which must then see escapes."""

from server.sandbox import isolation

isolation._switched_off = frozenset({"seccomp"})
