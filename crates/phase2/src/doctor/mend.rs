//! The repairs of `doctor --fix`: each is a part of a step that only puts back what is ours, on files and nodes that hold no data.

use std::collections::BTreeSet;
use std::time::Duration;

use blueprint_pipeline::{Failure, Outcome, Progress};
use blueprint_safekeeping::private_file;

use super::findings::{Finding, Mend};
use crate::context::Context;
use crate::error::Error;
use crate::installer::{Installer as _, Work};
use crate::kind_node_trust::KindNodeTrust;
use crate::registry_dns_pin::{self, RegistryDnsPin};
use crate::{local_path_provisioner, openbao};

/// A node remembers a name that it did not find for five seconds.
const REACHABLE: Duration = Duration::from_secs(20);

/// A repair that was tried.
#[derive(Debug)]
pub struct Mended {
    /// Which.
    pub mend: Mend,
    /// What it did, or why not.
    pub result: Result<Outcome, Failure>,
}

/// Does what the findings allow, one after the other; one that fails does not stop the others.
pub async fn mend(context: &Context, findings: &[Finding]) -> Vec<Mended> {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    let wanted: BTreeSet<Mend> = findings.iter().filter_map(|finding| finding.mend).collect();
    let mut all = Vec::new();
    for mend in wanted {
        let result = one(work, mend)
            .await
            .map_err(|error| error.into_failure(mend.task()));
        all.push(Mended { mend, result });
    }
    all
}

async fn one(work: Work<'_>, mend: Mend) -> Result<Outcome, Error> {
    match mend {
        Mend::FileModes => file_modes(work.context),
        Mend::DefaultClass => local_path_provisioner::mark_default(work).await,
        Mend::NodeTrust => KindNodeTrust.install(work).await,
        Mend::HostsPin => {
            let outcome = RegistryDnsPin.install(work).await?;
            // Whether the registry itself answers is the next look's to tell.
            registry_dns_pin::wait_reachable(work, REACHABLE).await.ok();
            Ok(outcome)
        }
        Mend::Unseal => openbao::unseal(work).await,
    }
}

fn file_modes(context: &Context) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    for folder in context.workspace.private_folders() {
        for mended in private_file::mend_modes(&folder)? {
            outcome.changed(mended.to_string());
        }
    }
    Ok(outcome)
}

impl Mend {
    /// Where the failure map looks.
    fn task(self) -> &'static str {
        match self {
            Self::FileModes => "preflight",
            Self::DefaultClass => "local-path",
            Self::NodeTrust => "node-trust",
            Self::HostsPin => "registry-pin",
            Self::Unseal => "openbao",
        }
    }

    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::FileModes => "take others' rights off the private files",
            Self::DefaultClass => "make local-path the only default class",
            Self::NodeTrust => "write the CA into the nodes",
            Self::HostsPin => "pin the registry in the nodes",
            Self::Unseal => "unseal OpenBao",
        }
    }
}
