"""Tenants: keyspaces with a directory and quotas of their own."""

from .tenant import SHARED, QuotaUsage, Tenant, TenantDeleted, TenantUsage
from .tenants import Tenants

__all__ = ["SHARED", "QuotaUsage", "Tenant", "TenantDeleted", "TenantUsage", "Tenants"]
