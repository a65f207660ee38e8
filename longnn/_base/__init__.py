"""What every layer may use: files, provenance, interrupts, derivatives, suggestions.

Private. Modules are imported one by one, so that who wants one does not wait for another.
"""
