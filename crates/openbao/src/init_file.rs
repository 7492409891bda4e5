//! `openbao-init.json`, in the shape of `bao operator init -format=json`.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blueprint_safekeeping::private_file;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

const EXPECTED: &str = "OpenBao init file";

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

impl fmt::Debug for InitFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitFile")
            .field("unseal_keys", &self.unseal_keys.len())
            .field("threshold", &self.threshold)
            .finish_non_exhaustive()
    }
}

/// Text that is a key or token: wiped when dropped.
struct Hidden(SecretString);

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(SecretString::from(text)))
    }
}

/// What is read: the CLI's names or the API's (`api/sys/init.go`: `keys`, `keys_base64`).
#[derive(Deserialize)]
struct Shape {
    #[serde(alias = "keys_base64")]
    unseal_keys_b64: Vec<Hidden>,
    unseal_shares: Option<u32>,
    unseal_threshold: Option<u32>,
    root_token: Hidden,
}

/// What is written, in the CLI's order (`command/operator_init.go`, `machineInit`).
#[derive(Serialize)]
struct CliShape<'a> {
    unseal_keys_b64: Vec<&'a str>,
    unseal_keys_hex: Vec<&'a str>,
    unseal_shares: usize,
    unseal_threshold: u32,
    recovery_keys_b64: [&'a str; 0],
    recovery_keys_hex: [&'a str; 0],
    recovery_keys_shares: u32,
    recovery_keys_threshold: u32,
    root_token: &'a str,
}

impl InitFile {
    /// From the raw answer of `PUT sys/init` (`keys`, `keys_base64`, `root_token`); shares and threshold as asked for.
    pub fn from_init_answer(
        raw: &[u8],
        shares: u32,
        threshold: u32,
        origin: &Path,
    ) -> Result<Self, private_file::Error> {
        let file = parse(raw, Some(threshold)).map_err(malformed(origin))?;
        let found = file.unseal_keys.len();
        if u32::try_from(found) != Ok(shares) {
            return Err(malformed(origin)(format!(
                "expected {shares} keys, found {found}"
            )));
        }
        Ok(file)
    }

    /// Reads the file (the CLI's shape, or a raw API answer left by a crash); `None` if there is none. A raw answer does not carry the threshold: there it is
    /// the number of keys, which always unseals.
    pub fn read(path: &Path) -> Result<Option<Self>, private_file::Error> {
        let Some(bytes) = private_file::read(path)? else {
            return Ok(None);
        };
        parse(&bytes, None).map(Some).map_err(malformed(path))
    }

    /// Writes it in the CLI's shape (`unseal_keys_b64`, `unseal_keys_hex`, `unseal_shares`, `unseal_threshold`, `recovery_keys_*`, `root_token`).
    pub fn write(&self, path: &Path) -> Result<private_file::Written, private_file::Error> {
        let decode = |key: &SecretString| STANDARD.decode(key.expose_secret()).map(Zeroizing::new);
        let keys: Vec<Zeroizing<Vec<u8>>> = self
            .unseal_keys
            .iter()
            .map(decode)
            .collect::<Result<_, _>>()
            .map_err(|_| malformed(path)("a key is not base64".to_owned()))?;
        let hex: Vec<Zeroizing<String>> = keys.iter().map(|key| hex(key)).collect();
        let shape = CliShape {
            unseal_keys_b64: self
                .unseal_keys
                .iter()
                .map(ExposeSecret::expose_secret)
                .collect(),
            unseal_keys_hex: hex.iter().map(|key| key.as_str()).collect(),
            unseal_shares: self.unseal_keys.len(),
            unseal_threshold: self.threshold,
            recovery_keys_b64: [],
            recovery_keys_hex: [],
            recovery_keys_shares: 0,
            recovery_keys_threshold: 0,
            root_token: self.root_token.expose_secret(),
        };
        let mut text = Zeroizing::new(serde_json::to_string_pretty(&shape).map_err(|error| {
            malformed(path)(format!("it cannot be written ({:?})", error.classify()))
        })?);
        text.push('\n');
        private_file::write(path, text.as_bytes())
    }
}

fn malformed(path: &Path) -> impl Fn(String) -> private_file::Error {
    let path = path.to_owned();
    move |found| private_file::Error::Malformed {
        path: path.clone(),
        expected: EXPECTED,
        found,
    }
}

/// The message never quotes the text: serde's own would.
fn parse(raw: &[u8], asked_threshold: Option<u32>) -> Result<InitFile, String> {
    let shape: Shape = serde_json::from_slice(raw).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Eof => "it is cut off",
            serde_json::error::Category::Data => {
                "a field is missing or of the wrong kind (expected unseal_keys_b64 and root_token)"
            }
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
                "it is not JSON"
            }
        };
        format!("{what}, at line {} column {}", error.line(), error.column())
    })?;
    let count = u32::try_from(shape.unseal_keys_b64.len()).unwrap_or(u32::MAX);
    if count == 0 {
        return Err("it holds no unseal key".to_owned());
    }
    if let Some(shares) = shape.unseal_shares
        && shares != count
    {
        return Err(format!(
            "unseal_shares says {shares}, but it holds {count} keys"
        ));
    }
    let threshold = asked_threshold.or(shape.unseal_threshold).unwrap_or(count);
    if threshold == 0 || threshold > count {
        return Err(format!(
            "{count} keys cannot meet a threshold of {threshold}"
        ));
    }
    for (index, key) in shape.unseal_keys_b64.iter().enumerate() {
        // The shortest share of any seal is longer than this.
        let decoded = STANDARD.decode(key.0.expose_secret()).map(Zeroizing::new);
        if decoded.is_ok_and(|key| key.len() >= 16) {
            continue;
        }
        return Err(format!("unseal key {} is not base64 or cut off", index + 1));
    }
    if shape.root_token.0.expose_secret().is_empty() {
        return Err("root_token is empty".to_owned());
    }
    Ok(InitFile {
        unseal_keys: shape.unseal_keys_b64.into_iter().map(|key| key.0).collect(),
        threshold,
        root_token: shape.root_token.0,
    })
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    use fmt::Write as _;
    let mut text = Zeroizing::new(String::with_capacity(bytes.len() * 2));
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(*text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn key(byte: u8) -> String {
        STANDARD.encode([byte; 33])
    }

    fn raw(keys: &[String]) -> Vec<u8> {
        json!({"keys": ["00"], "keys_base64": keys, "root_token": "s.hush"})
            .to_string()
            .into_bytes()
    }

    fn refused(raw: &[u8]) -> String {
        let error =
            InitFile::from_init_answer(raw, 1, 1, Path::new("openbao-init.json")).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hush"));
        error.to_string()
    }

    #[test]
    fn an_answer_becomes_the_file_the_cli_would_write() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("secrets/openbao-init.json");
        assert!(InitFile::read(&path).unwrap().is_none());
        let init =
            InitFile::from_init_answer(&raw(&[key(0xab), key(1), key(2)]), 3, 2, &path).unwrap();
        assert_eq!(init.write(&path).unwrap(), private_file::Written::Created);
        let text = std::fs::read_to_string(&path).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["unseal_keys_b64"][0], key(0xab));
        assert_eq!(json["unseal_keys_hex"][0], "ab".repeat(33));
        assert_eq!(json["unseal_shares"], 3);
        assert_eq!(json["unseal_threshold"], 2);
        assert_eq!(json["recovery_keys_b64"], json!([]));
        assert_eq!(json["recovery_keys_threshold"], 0);
        assert_eq!(json["root_token"], "s.hush");
        let back = InitFile::read(&path).unwrap().unwrap();
        assert_eq!((back.unseal_keys.len(), back.threshold), (3, 2));
        assert_eq!(back.root_token.expose_secret(), "s.hush");
        assert_eq!(back.write(&path).unwrap(), private_file::Written::Unchanged);
    }

    #[test]
    fn a_raw_answer_left_by_a_crash_is_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("openbao-init.json.answer");
        private_file::write(&path, &raw(&[key(1), key(2)])).unwrap();
        assert_eq!(InitFile::read(&path).unwrap().unwrap().threshold, 2);
    }

    #[test]
    fn truncated_and_edited_files_are_refused_without_quoting_them() {
        let whole = raw(&[key(1)]);
        for end in 0..whole.len() {
            refused(&whole[..end]);
        }
        assert!(refused(b"hush").contains("not JSON"));
        assert!(
            refused(br#"{"keys_base64": "hush", "root_token": "hush"}"#).contains("wrong kind")
        );
        assert!(refused(&raw(&["hush!".to_owned()])).contains("key 1 is not base64"));
        assert!(refused(&raw(&[key(1), key(2)])).contains("expected 1 keys, found 2"));
        assert!(refused(&raw(&[])).contains("no unseal key"));
        let few = json!({"unseal_keys_b64": [key(1)], "unseal_shares": 5, "unseal_threshold": 3, "root_token": "s.hush"});
        assert!(
            refused(few.to_string().as_bytes()).contains("unseal_shares says 5, but it holds 1")
        );
    }

    #[test]
    fn debug_prints_no_secret() {
        let init = InitFile::from_init_answer(&raw(&[key(1)]), 1, 1, Path::new("x")).unwrap();
        let text = format!("{init:?}");
        assert!(!text.contains("hush") && !text.contains(&key(1)), "{text}");
    }

    #[test]
    fn fuzz_init_file() {
        let raw = raw(&[key(1), key(2), key(3)]);
        let cli = json!({"unseal_keys_b64": [key(1), key(2)], "unseal_keys_hex": ["01"], "unseal_shares": 2, "unseal_threshold": 1, "root_token": "s.hush"});
        let cli = format!("{cli:#}\n");
        blueprint_fuzzing::fuzz("openbao-init.json", &[&raw, cli.as_bytes()], |bytes| {
            let result = parse(bytes, None);
            if let Ok(file) = &result {
                let keys = u32::try_from(file.unseal_keys.len()).unwrap();
                assert!((1..=keys).contains(&file.threshold));
                assert!(!file.root_token.expose_secret().is_empty());
            }
            (&result).into()
        });
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = InitFile::from_init_answer(&bytes, 1, 1, Path::new("x"));
        }

        #[test]
        fn whatever_was_written_is_read(keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 16..40), 1..6), token in "\\PC{1,40}") {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("init.json");
            let init = InitFile {
                unseal_keys: keys.iter().map(|key| SecretString::from(STANDARD.encode(key))).collect(),
                threshold: 1,
                root_token: SecretString::from(token.clone()),
            };
            init.write(&path).unwrap();
            let back = InitFile::read(&path).unwrap().unwrap();
            prop_assert_eq!(back.root_token.expose_secret(), &token);
            prop_assert_eq!(back.unseal_keys.len(), keys.len());
            for (one, other) in back.unseal_keys.iter().zip(&init.unseal_keys) {
                prop_assert_eq!(one.expose_secret(), other.expose_secret());
            }
        }
    }
}
