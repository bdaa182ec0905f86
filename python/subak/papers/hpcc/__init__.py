"""Experiments of HPCC (High Precision Congestion Control)."""
