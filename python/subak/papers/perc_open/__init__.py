"""What the PERC thesis leaves open (section 5.1): experiments without a claim of a paper."""
