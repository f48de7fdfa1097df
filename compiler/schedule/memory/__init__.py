"""Which buffers reach memory, how long they live, whose storage they take over, and the order that needs least."""
