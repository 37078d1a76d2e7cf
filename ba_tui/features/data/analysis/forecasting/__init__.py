"""Forecasts of one series: its periods and gaps, and the helper that fits a model. May import what the analysis may."""
