"""PERC, proactive explicit rate control: the thesis on Fair, n-PERC, s-PERC and s-PERC*."""
