"""HPCC: high precision congestion control."""
