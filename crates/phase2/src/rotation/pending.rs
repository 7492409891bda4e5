//! A password's rotation on disk: the former and the next value, from before anything knows of the next one until everything does.

use std::path::Path;

use blueprint_safekeeping::private_file;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::Error;

/// Both values.
#[derive(Clone)]
pub(crate) struct Pending {
    /// In force when the rotation began.
    pub(crate) former: SecretString,
    /// The one to come.
    pub(crate) next: SecretString,
}

/// Where a rotation stands, by its file and by the credential's own.
pub(crate) enum Stage {
    /// None has begun.
    None,
    /// The credential's file still has the former value; the service may know the next one.
    Begun(Pending),
    /// The credential's file has the next value, the service has proven it.
    Committed(Pending),
    /// The credential's file has neither: somebody has set a third value since.
    Overtaken,
}

#[derive(Serialize, Deserialize)]
struct Shape<'a> {
    former: &'a str,
    next: &'a str,
}

/// Looks. `present` is the value of the credential's own file.
pub(crate) fn stage(path: &Path, present: &SecretString) -> Result<Stage, Error> {
    let Some(pending) = read(path)? else {
        return Ok(Stage::None);
    };
    let present = present.expose_secret();
    Ok(if pending.next.expose_secret() == present {
        Stage::Committed(pending)
    } else if pending.former.expose_secret() == present {
        Stage::Begun(pending)
    } else {
        Stage::Overtaken
    })
}

pub(crate) fn write(path: &Path, pending: &Pending) -> Result<(), Error> {
    let shape = Shape {
        former: pending.former.expose_secret(),
        next: pending.next.expose_secret(),
    };
    let text = serde_json::to_string(&shape)
        .map(Zeroizing::new)
        .map_err(|error| Error::Failed {
            action: format!("write {}", path.display()),
            found: error.to_string(),
            hint: "report this: two strings always are JSON".to_owned(),
        })?;
    private_file::write(path, format!("{}\n", text.as_str()).as_bytes())?;
    Ok(())
}

/// The file as it is read.
#[derive(Deserialize)]
struct Owned {
    former: String,
    next: String,
}

fn read(path: &Path) -> Result<Option<Pending>, Error> {
    let Some(bytes) = private_file::read(path)? else {
        return Ok(None);
    };
    // serde's message could quote a value.
    let unreadable = |_| {
        Error::Refused {
        summary: format!("{} cannot be read", path.display()),
        expected: "the former and the next value of a credential whose rotation is not over".to_owned(),
        found: "something else".to_owned(),
        hint: "run `blueprint up`, which finds out which password is in force; then remove the file and rotate again".to_owned(),
    }
    };
    let owned: Owned = serde_json::from_slice(&bytes).map_err(unreadable)?;
    Ok(Some(Pending {
        former: SecretString::from(owned.former),
        next: SecretString::from(owned.next),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        SecretString::from(text)
    }

    #[test]
    fn the_stage_is_told_by_the_credentials_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rotations/redis");
        assert!(matches!(stage(&path, &secret("old")), Ok(Stage::None)));
        let pending = Pending {
            former: secret("old"),
            next: secret("a \"new\" one"),
        };
        write(&path, &pending).unwrap();
        assert!(matches!(stage(&path, &secret("old")), Ok(Stage::Begun(_))));
        let Ok(Stage::Committed(read)) = stage(&path, &secret("a \"new\" one")) else {
            panic!("not committed");
        };
        assert_eq!(read.former.expose_secret(), "old");
        assert!(matches!(
            stage(&path, &secret("third")),
            Ok(Stage::Overtaken)
        ));
    }

    #[test]
    fn a_damaged_file_is_named_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redis");
        private_file::write(&path, b"{\"former\": \"hush\", \"next\": 4711").unwrap();
        let Err(error) = stage(&path, &secret("hush")) else {
            panic!("was read");
        };
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains("hush") && !shown.contains("4711"),
            "{shown}"
        );
    }
}
