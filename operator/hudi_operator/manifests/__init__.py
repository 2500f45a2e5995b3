"""What is handed to a launcher: names of attempts and JobSpecs. No I/O, no clock."""
