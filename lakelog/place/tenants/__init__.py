"""Tenants: keyspaces with a directory and quotas of their own."""

from typing import TYPE_CHECKING

from ...base.lazy_names import lazy_names

if TYPE_CHECKING:
    from .tenant import SHARED, QuotaUsage, Tenant, TenantDeleted, TenantUsage
    from .tenants import Tenants

__all__ = ["SHARED", "QuotaUsage", "Tenant", "TenantDeleted", "TenantUsage", "Tenants"]

__getattr__ = lazy_names(
    __name__,
    {
        "SHARED": ".tenant",
        "QuotaUsage": ".tenant",
        "Tenant": ".tenant",
        "TenantDeleted": ".tenant",
        "TenantUsage": ".tenant",
        "Tenants": ".tenants",
    },
)
