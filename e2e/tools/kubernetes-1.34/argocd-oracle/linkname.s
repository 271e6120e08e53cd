// Lets go:linkname declare functions without a body.
