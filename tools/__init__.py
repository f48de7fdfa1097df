"""Programs for whoever works on Fusionscope. Each says in its first lines what it does and how it is called."""
