"""What builds images and runs their code: the protocol, and the two that keep it."""
