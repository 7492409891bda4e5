//! `openbao-init.json`, in the shape of `bao operator init -format=json`.

use std::path::Path;

use blueprint_safekeeping::private_file;
use secrecy::SecretString;

/// Keys and root token. Debug prints neither.
#[derive(Clone)]
pub struct InitFile {
    /// `unseal_keys_b64`.
    pub unseal_keys: Vec<SecretString>,
    /// `unseal_threshold`.
    pub threshold: u32,
    /// `root_token`.
    pub root_token: SecretString,
}

impl InitFile {
    /// From the raw answer of `PUT sys/init` (`keys`, `keys_base64`, `root_token`); shares and threshold as asked for.
    pub fn from_init_answer(raw: &[u8], shares: u32, threshold: u32, origin: &Path) -> Result<Self, private_file::Error> {
        todo!()
    }

    /// Reads the file (the CLI's shape, or a raw API answer left by a crash); `None` if there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, private_file::Error> {
        todo!()
    }

    /// Writes it in the CLI's shape (`unseal_keys_b64`, `unseal_keys_hex`, `unseal_shares`, `unseal_threshold`, `recovery_keys_*`, `root_token`).
    pub fn write(&self, path: &Path) -> Result<private_file::Written, private_file::Error> {
        todo!()
    }
}
