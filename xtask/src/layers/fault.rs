//! The violations of the architecture.

/// A violation of the architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// A package that the architecture does not contain.
    #[error(
        "{name} has no place in the architecture: add a row with a sentence to \
         xtask/src/layers/arrow.rs"
    )]
    Unknown {
        /// The package.
        name: String,
    },
    /// A dependency that the architecture does not allow.
    #[error("{name} must not use {used}: {sentence}")]
    ForbiddenUse {
        /// The package.
        name: String,
        /// The dependency.
        used: String,
        /// The sentence of the row that forbids the dependency.
        sentence: &'static str,
    },
    /// A crate root without a required attribute.
    #[error("{file} lacks {attribute}")]
    Root {
        /// The file.
        file: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// A package that does not inherit the lints of the workspace.
    #[error("the manifest of {name} lacks `[lints] workspace = true`")]
    Lints {
        /// The package.
        name: String,
    },
}
