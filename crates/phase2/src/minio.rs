//! Step 7: MinIO, the eleven buckets, and the Secret that tells GitLab where they are.

pub(crate) mod buckets;
pub(crate) mod release;
pub(crate) mod s3;
pub(crate) mod storage_secret;

pub use buckets::Buckets;
pub use release::Minio;
pub(crate) use release::{PASSWORD_KEY, SECRET, USER_KEY, set_password, takes, try_passwords};
