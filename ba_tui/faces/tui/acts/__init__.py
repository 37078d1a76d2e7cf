"""What commands do, and what each room brings to the screen. They import screens late: most are never shown."""
