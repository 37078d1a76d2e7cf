"""What makes tests notice faults: the check for leaks, a layer of faults below files, faults put into modules."""
