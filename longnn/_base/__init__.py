"""What every layer may use: files, provenance, interrupts, derivatives, suggestions.

Private. Modules are imported one by one: a caller of one does not wait for the others to load.
"""
