"""Tenants: keyspaces with a directory and quotas of their own."""
