"""What commands do, as functions of the chat screen and an argument. They import screens late: most are never shown."""
