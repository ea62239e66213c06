"""What a package's own metadata says, in each of the forms it has had."""
