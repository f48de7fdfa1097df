"""Attacks on the sandbox, judged by what is seen from outside of it, in every tier and as root and as a plain user."""
