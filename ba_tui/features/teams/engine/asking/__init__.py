"""Requests of one member to another and their answers; approvals that a worker asks its lead for. May import what the
team's room may."""
