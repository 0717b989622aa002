// whatif
