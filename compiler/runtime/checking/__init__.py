"""Is it right? Results against float64, beside eager's own error.

verify, element_errors           how far a result is from its reference: as one number, and by element
judge                            whether it is right: the one place that decides
gradients, double_precision      whole calls with their gradients, in float64
rewrite_check                    a rewritten graph beside the one that Dynamo captured
wrong_results                    what the report says of wrong ones, and which times they take away
"""
