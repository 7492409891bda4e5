//! An OpenBao as far as its initialisation goes: one init, keys that only the one who got the answer holds, 400 for every later call.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// What the storage behind it holds: the root token of the last init.
#[derive(Clone, Default)]
pub(crate) struct Storage {
    root_token: Arc<Mutex<Option<String>>>,
    inits: Arc<Mutex<u32>>,
    /// The answer is lost on its way: the server has stored its keys, the client sees a gateway's error.
    loses_answers: Arc<Mutex<bool>>,
}

impl Storage {
    /// The token of the server that runs on it; `None` while it is not initialised.
    pub(crate) fn root_token(&self) -> Option<String> {
        self.root_token.lock().unwrap().clone()
    }

    /// What `start_over` does: no tables, so an uninitialised server.
    pub(crate) fn empty(&self) {
        *self.root_token.lock().unwrap() = None;
    }

    pub(crate) fn lose_answers(&self, lost: bool) {
        *self.loses_answers.lock().unwrap() = lost;
    }
}

struct Init(Storage);

impl Respond for Init {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let mut token = self.0.root_token.lock().unwrap();
        if token.is_some() {
            return ResponseTemplate::new(400)
                .set_body_json(json!({"errors": ["Vault is already initialized"]}));
        }
        let mut inits = self.0.inits.lock().unwrap();
        *inits += 1;
        let fresh = format!("s.token-{inits}");
        *token = Some(fresh.clone());
        if *self.0.loses_answers.lock().unwrap() {
            return ResponseTemplate::new(502);
        }
        let keys: Vec<_> = (0..5_u8)
            .map(|share| STANDARD.encode([share; 33]))
            .collect();
        ResponseTemplate::new(200)
            .set_body_json(json!({"keys": [], "keys_base64": keys, "root_token": fresh}))
    }
}

/// A server on this storage, for as long as it is held.
pub(crate) async fn start(storage: &Storage) -> (MockServer, SocketAddr) {
    let server = MockServer::start().await;
    Mock::given(method("PUT"))
        .and(path("/v1/sys/init"))
        .respond_with(Init(storage.clone()))
        .mount(&server)
        .await;
    let address = *server.address();
    (server, address)
}
