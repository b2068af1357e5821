//! Keeps the key of a host that is joining a grid until it has the certificate. A token is valid for one key:
//! a host that lost the answer, or had no room for it, asks again with the same key.

use crate::authority::{AuthorityError, new_key};
use crate::files::{self, FileError};
use crate::join_token::JoinToken;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "joining.json";

#[derive(Serialize, Deserialize)]
pub(super) struct Pending {
    /// Hash of the token's secret.
    token: String,
    pub(super) key: String,
    pub(super) request: String,
}

impl Pending {
    /// Returns the key that was kept for this token, or makes and keeps one.
    pub(super) fn of(token: &JoinToken, directory: &Path) -> Result<Pending, AuthorityError> {
        let path = directory.join(FILE);
        let hash = JoinToken::hash(&token.secret);
        // A key that cannot be read, or belongs to another token, is useless.
        let kept = files::read_secret(&path).ok();
        let kept = kept.and_then(|text| serde_json::from_str::<Pending>(&text).ok());
        if let Some(kept) = kept.filter(|kept| kept.token == hash) {
            return Ok(kept);
        }
        let (key, request) = new_key()?;
        let pending = Pending {
            token: hash,
            key,
            request,
        };
        // Strings have a JSON form.
        let text = serde_json::to_vec(&pending).unwrap_or_default();
        files::replace(&path, &text, 0o600)?;
        Ok(pending)
    }

    /// Removes the pending key once the membership contains it.
    pub(super) fn forget(directory: &Path) -> Result<(), FileError> {
        let path = directory.join(FILE);
        std::fs::remove_file(&path).map_err(FileError::at("remove", &path))
    }
}
