//! PASS, as PARM fits it to what was measured.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use super::Trials;
use crate::belief::Choices;
use crate::model::pass::{Pass, Sample, fit};
use crate::world::law::{self, Sampled};
use crate::world::{Application, Law, World};

/// PASS for each application. One that was tried on too few sizes or under too few caps for that is believed to do
/// what was measured.
pub(crate) fn pass(world: &World, choices: &Choices) -> Vec<Arc<dyn Law>> {
    let fitted = |(place, application): (usize, &Application)| {
        let trials = Trials::of(world, place, choices);
        let samples = trials.profile.rows.iter().map(|row| Sample {
            nodes: row.configuration.nodes,
            cap_watts: row.configuration.cap.as_f64(),
            seconds: row.time.secs_f64(),
        });
        let law = fitted_once(&samples.collect::<Vec<_>>()).and_then(|fit| {
            let law = Sampled::of(|size, share| {
                let seconds = fit.scaling.seconds(trials.nodes(size)).unwrap_or(1.0);
                let cap = share * choices.node.highest.as_f64();
                law::Sample { time: seconds * fit.throttling.stretched(cap), draw: share }
            });
            law.ok()
        });
        law.map_or_else(|| application.law.clone(), |law| Arc::new(law) as Arc<dyn Law>)
    };
    world.applications().iter().enumerate().map(fitted).collect()
}

/// The laws that are nearest to the samples. A fit takes tens of milliseconds, and each run of a comparison asks for the
/// same ones, so that they are kept.
fn fitted_once(samples: &[Sample]) -> Option<Pass> {
    type Fits = HashMap<Vec<[u64; 3]>, Arc<OnceLock<Option<Pass>>>>;
    static FITS: LazyLock<Mutex<Fits>> = LazyLock::new(Mutex::default);
    let bits = |sample: &Sample| {
        [u64::from(sample.nodes), sample.cap_watts.to_bits(), sample.seconds.to_bits()]
    };
    let key = samples.iter().map(bits).collect();
    // Whoever wants other samples need not wait until these are fitted.
    let kept = FITS.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
    *kept.get_or_init(|| fit(samples).ok().map(|fit| fit.pass))
}
