//! Violations of the architecture, as the task prints them.

/// A violation of the architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The architecture does not contain the package.
    #[error(
        "{name} has no place in the architecture: add a row with a sentence to \
         xtask/src/layers/arrow.rs"
    )]
    Unknown {
        /// The name of the package.
        name: String,
    },
    /// The architecture does not allow a dependency.
    #[error("{name} must not use {used}: {sentence}")]
    ForbiddenUse {
        /// The name of the package.
        name: String,
        /// The name of the dependency.
        used: String,
        /// The sentence of the row that forbids the dependency.
        sentence: &'static str,
    },
    /// The root file of a crate lacks a required attribute.
    #[error("{file} lacks {attribute}")]
    Root {
        /// The path of the file.
        file: String,
        /// The missing attribute.
        attribute: &'static str,
    },
    /// A package does not inherit the lints of the workspace.
    #[error("the manifest of {name} lacks `[lints] workspace = true`")]
    Lints {
        /// The name of the package.
        name: String,
    },
}
