"""What lowering and scheduling take, by the number of loop nodes."""
