"""The program of the helper process that connects to one source. Only this package imports ibis and its drivers."""
