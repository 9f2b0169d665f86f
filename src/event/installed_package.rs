//! The packages that are installed for a server which is started as a process.

use serde::Deserialize;

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageKind {
    /// A package for Node.js.
    Npm,
    /// A package for Python.
    Pypi,
    /// A crate.
    Cargo,
}

/// A package that is installed for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    /// Where it comes from.
    pub kind: PackageKind,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}
