//! New unseal keys: `sys/rotate/root/*` (OpenBao 2.7 answers 405 to the former `sys/rekey/*`). With verification asked for, the new keys are in force only when
//! enough of them were given back, so that an answer that is lost costs nothing.

use blueprint_failpoint::failpoint;
use reqwest::Method;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use super::{Client, Error, wire};

const INIT: &str = "sys/rotate/root/init";
const UPDATE: &str = "sys/rotate/root/update";
const VERIFY: &str = "sys/rotate/root/verify";

/// What giving a present key led to.
pub enum Given {
    /// More are needed.
    More,
    /// The new keys, and the nonce to verify them with.
    Keys {
        /// Base64, as in the init file.
        keys: Vec<SecretString>,
        /// For [`Client::rotation_verify`].
        nonce: String,
    },
}

impl Client {
    /// Begins a rotation, instead of one that an earlier run left behind; answers its nonce. Needs a token.
    pub async fn rotation_begin(&self, shares: u32, threshold: u32) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Begun {
            nonce: String,
        }
        self.rotation_cancel().await?;
        let request = self.request(Method::POST, INIT).json(&json!({
            "secret_shares": shares,
            "secret_threshold": threshold,
            "require_verification": true,
        }));
        failpoint!(before, "ask OpenBao", "{INIT}");
        let body = self.call(request, INIT).await?;
        failpoint!(after, "ask OpenBao", "{INIT}");
        let begun: wire::Wrapped<Begun> = wire::parse(&body, INIT)?;
        Ok(begun.data.nonce)
    }

    /// Ends one without any effect; also when there is none.
    pub async fn rotation_cancel(&self) -> Result<(), Error> {
        self.call(self.request(Method::DELETE, INIT), INIT).await?;
        Ok(())
    }

    /// Gives one of the keys in force. Wrong ones are noticed with the last that is needed: 400, and the count begins anew.
    pub async fn rotation_give(&self, nonce: &str, key: &SecretString) -> Result<Given, Error> {
        let request = self.request(Method::POST, UPDATE);
        let request = wire::with_body(request, &wire::KeyOf { nonce, key }, UPDATE)?;
        failpoint!(before, "ask OpenBao", "{UPDATE}");
        let body = self.call(request, UPDATE).await?;
        failpoint!(after, "ask OpenBao", "{UPDATE}");
        match wire::rotated(&body, UPDATE)? {
            Some((keys, nonce)) => Ok(Given::Keys { keys, nonce }),
            None => Ok(Given::More),
        }
    }

    /// Gives one of the new keys back; answers whether that was the last one needed: they are in force then, and the former ones are nothing any more.
    pub async fn rotation_verify(&self, nonce: &str, key: &SecretString) -> Result<bool, Error> {
        #[derive(Deserialize)]
        struct Verified {
            #[serde(default)]
            complete: bool,
        }
        let request = self.request(Method::POST, VERIFY);
        let request = wire::with_body(request, &wire::KeyOf { nonce, key }, VERIFY)?;
        failpoint!(before, "ask OpenBao", "{VERIFY}");
        let body = self.call(request, VERIFY).await?;
        failpoint!(after, "ask OpenBao", "{VERIFY}");
        let verified: wire::Wrapped<Verified> = wire::parse(&body, VERIFY)?;
        Ok(verified.data.complete)
    }
}
