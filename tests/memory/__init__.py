"""Tests of the store of memory. May import the store, and what its helper is started with."""
