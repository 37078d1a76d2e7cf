"""Tests of models on clouds."""
