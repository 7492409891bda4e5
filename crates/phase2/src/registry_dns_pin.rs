//! Installer: registry_dns_pin.
