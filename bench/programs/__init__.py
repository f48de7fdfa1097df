"""Random programs: made from a seed, judged against float64, compiled by the hundred."""
