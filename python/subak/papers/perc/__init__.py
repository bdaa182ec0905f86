"""Experiments of the PERC thesis (proactive explicit rate control): the schemes Fair, n-PERC, s-PERC and s-PERC*."""
