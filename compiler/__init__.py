"""Fusionscope's compiler: a snippet in, a report out. Start at `compiler/pipeline.py`."""
