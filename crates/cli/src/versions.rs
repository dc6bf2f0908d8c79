//! The versions of this program and its compiler.

use linerate_evidence::Versions;

/// Returns the versions of this program and its compiler.
pub(crate) fn of_this_build() -> Versions {
    let commit = env!("LINERATE_COMMIT");
    Versions {
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
        commit: (!commit.is_empty()).then(|| commit.to_owned()),
        rustc: env!("LINERATE_RUSTC").to_owned(),
        debug_build: cfg!(debug_assertions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_known() {
        let text = of_this_build().text();
        assert!(text.contains("rustc 1."), "{text}");
    }
}
