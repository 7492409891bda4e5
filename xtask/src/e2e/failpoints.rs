//! The process dies before, during and after each of its effects on the outside, and the next run goes on. At the end everything is as after a run that
//! nobody disturbed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Evidence, Scene, end_state, expect, fresh};
use crate::blueprint;
use crate::error::{Error, FileContext as _, Result};
use crate::process::last_lines;
use crate::report::seconds;

/// What the test build looks for, and no other build knows.
const DIE_AT: &str = "BLUEPRINT_FAILPOINT";
const LOG: &str = "BLUEPRINT_FAILPOINT_LOG";
/// Far more than there are points.
const MOST: usize = 2000;
/// How many deaths are told of at once.
const TELL_EVERY: usize = 25;
/// Helm outlives the run that started it. Who dies while it works finds the release done afterwards, and never gets to the point behind it.
const HELM_AT_WORK: &str = "under way helm";

/// A way through an installation: the test build, and the file of points that it died at.
struct Walk<'a> {
    scene: &'a Scene<'a>,
    program: PathBuf,
    died_at: PathBuf,
    reached: PathBuf,
}

/// What a walk came to.
struct Walked {
    deaths: usize,
    slowest: Duration,
    took: Duration,
}

/// One point of each kind: before, during and after the first apply, the first helm, the first file…
pub(super) fn one_of_each_kind(scene: &mut Scene) -> Result<Evidence> {
    let program = test_build(scene)?;
    let undisturbed = end_state::undisturbed(scene)?;
    fresh::installation(scene, |scene| {
        let walk = Walk::new(scene, &program, "few")?;
        let walked = walk.until_green(&format!("few:1:{}", walk.died_at.display()))?;
        let kinds = walk.died_at()?;
        let ends = end_state::same_end(scene, &undisturbed)?;
        Ok(format!(
            "a sample: {} deaths, one of each kind of effect ({}); {}; {ends}; the whole sweep runs by hand: cargo xtask e2e failpoint-sweep",
            walked.deaths,
            kinds.into_iter().collect::<Vec<_>>().join(", "),
            walked.times()
        ))
    })
}

/// Every point; those while helm works on an installation of their own.
pub(super) fn sweep(scene: &mut Scene) -> Result<Evidence> {
    let program = test_build(scene)?;
    let undisturbed = end_state::undisturbed(scene)?;
    let mut helms = BTreeSet::new();
    let all = fresh::installation(scene, |scene| {
        let points = points_of_an_undisturbed_run(scene, &program)?;
        helms = points
            .iter()
            .filter(|point| point.starts_with(HELM_AT_WORK))
            .cloned()
            .collect();
        fresh_again(scene)?;
        let walk = Walk::new(scene, &program, "sweep")?;
        walk.pass_over(&helms)?;
        let walked = walk.until_green(&format!("new:{}", walk.died_at.display()))?;
        let died_at = walk.died_at()?;
        let never: Vec<_> = points
            .difference(&died_at)
            .filter(|point| !helms.contains(*point))
            .cloned()
            .collect();
        expect(
            never.is_empty(),
            "a death at every point of an undisturbed run",
            format!("none at {}", never.join(", ")),
        )?;
        let ends = end_state::same_end(scene, &undisturbed)?;
        Ok(format!(
            "{} points of an undisturbed run, {} deaths; {}; {ends}",
            points.len(),
            walked.deaths,
            walked.times()
        ))
    })?;
    let while_helm_works = fresh::installation(scene, |scene| {
        let walk = Walk::new(scene, &program, "helm")?;
        let mut deaths = 0;
        for point in &helms {
            deaths += usize::from(walk.run(point)?.is_none());
        }
        expect(
            deaths == helms.len(),
            "a death while each helm works",
            format!("{deaths} of {}", helms.len()),
        )?;
        walk.until_green("")?;
        end_state::same_end(scene, &undisturbed)
            .map(|ends| format!("{deaths} deaths while helm works; {ends}"))
    })?;
    Ok(format!(
        "{all}; on another fresh installation {while_helm_works}"
    ))
}

/// The build with failpoints. The program that people get must not have any.
fn test_build(scene: &Scene) -> Result<PathBuf> {
    let program = blueprint::ensure_with_failpoints(scene.lab, scene.report)?;
    let knows = |path: &Path| -> Result<bool> {
        let bytes = fs::read(path).file("read", path)?;
        Ok(bytes
            .windows(DIE_AT.len())
            .any(|window| window == DIE_AT.as_bytes()))
    };
    expect(
        knows(&program)? && !knows(scene.platform.program())?,
        "failpoints in the test build and none in the program that people get",
        format!(
            "{DIE_AT} in the test build: {}, in {}: {}",
            knows(&program)?,
            scene.platform.program().display(),
            knows(scene.platform.program())?
        ),
    )?;
    Ok(program)
}

fn points_of_an_undisturbed_run(scene: &Scene, program: &Path) -> Result<BTreeSet<String>> {
    let walk = Walk::new(scene, program, "undisturbed")?;
    walk.until_green("")?;
    lines(&walk.reached)
}

/// Another new cluster, and nothing of the installation before.
fn fresh_again(scene: &Scene) -> Result<()> {
    super::recreation::delete_cluster(scene)?;
    fresh::forget(scene)?;
    fresh::cluster(scene)
}

impl<'a> Walk<'a> {
    fn new(scene: &'a Scene<'a>, program: &Path, name: &str) -> Result<Self> {
        let folder = scene.lab.path().join("failpoints");
        fs::create_dir_all(&folder).file("create", &folder)?;
        let walk = Self {
            scene,
            program: program.to_owned(),
            died_at: folder.join(format!("{name}.died-at")),
            reached: folder.join(format!("{name}.reached")),
        };
        for file in [&walk.died_at, &walk.reached] {
            fs::write(file, "").file("write", file)?;
        }
        Ok(walk)
    }

    /// Runs until one gets to its end; every private file that once was there stays.
    fn until_green(&self, order: &str) -> Result<Walked> {
        let begun = Instant::now();
        let (mut deaths, mut slowest) = (0, Duration::ZERO);
        let mut kept = BTreeMap::new();
        loop {
            let started = Instant::now();
            let ended = self.run(order)?;
            slowest = slowest.max(started.elapsed());
            fresh::all_kept(self.scene, &kept)?;
            kept.extend(fresh::private_files(self.scene)?);
            if ended.is_some() {
                return Ok(Walked {
                    deaths,
                    slowest,
                    took: begun.elapsed(),
                });
            }
            deaths += 1;
            if deaths % TELL_EVERY == 0 {
                self.scene.report.say(format!(
                    "{deaths} deaths, the last one {}",
                    self.last_death()
                ));
            }
            if deaths > MOST {
                return Err(Error::unmet(
                    "a sweep without an end",
                    format!("see {}", self.died_at.display()),
                ));
            }
        }
    }

    /// One run: `None` for a death, the code of a green end otherwise. A run that fails is a fault: it could not go on from where the last one died.
    fn run(&self, order: &str) -> Result<Option<i32>> {
        let (code, stdout, stderr) = self
            .scene
            .platform
            .blueprint_built_as(&self.program)
            .args(["up", "--sequential", "--output", "plain"])
            .env(DIE_AT, order)
            .env(LOG, &self.reached)
            .captured()?;
        match code {
            None | Some(0) => Ok(code),
            Some(code) => Err(Error::unmet(
                format!(
                    "a run ended with {code} after a death {}{}",
                    self.last_death(),
                    last_lines(&format!("{stdout}{stderr}"))
                ),
                format!("the points are in {}", self.died_at.display()),
            )),
        }
    }

    fn last_death(&self) -> String {
        let text = fs::read_to_string(&self.died_at).unwrap_or_default();
        text.lines().next_back().unwrap_or("nowhere").to_owned()
    }

    fn died_at(&self) -> Result<BTreeSet<String>> {
        lines(&self.died_at)
    }

    /// Points that the walk is not to die at.
    fn pass_over(&self, points: &BTreeSet<String>) -> Result<()> {
        let text = points
            .iter()
            .fold(String::new(), |text, point| text + point + "\n");
        fs::write(&self.died_at, text).file("write", &self.died_at)
    }
}

impl Walked {
    fn times(&self) -> String {
        format!(
            "{} in all, the slowest run {}",
            seconds(self.took),
            seconds(self.slowest)
        )
    }
}

fn lines(file: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(file).file("read", file)?;
    Ok(text.lines().map(str::to_owned).collect())
}
