"""What is shown of results, where a type is more than a few fields. May import what ``core.results`` may."""
