"""What ba remembers, as screens: the browser, one entry, its text to edit. Import them late: most runs show none."""
