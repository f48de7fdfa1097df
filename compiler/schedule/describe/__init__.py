"""The schedule, its decisions, its memory and its traffic as the report shows them: a module each."""
