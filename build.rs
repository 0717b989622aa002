//! Compresses the chart script that the `plotly` crate carries, once, so that neither the program
//! nor a report has to hold 4.7 MB of it. No network is needed.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

use flate2::{Compression, GzBuilder};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    // Two script elements: the charts, and a typesetter for formulas, which no report has.
    let sources = plotly::Plot::offline_js_sources();
    let script = sources
        .split_once('>')
        .and_then(|(_, rest)| rest.split_once("</script>"))
        .map(|(script, _)| script)
        .filter(|script| script.contains("plotly.js v"))
        .ok_or("the plotly crate no longer begins its offline sources with plotly.js")?;
    let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
    packed.write_all(script.as_bytes())?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("plotly.min.js.gz"), packed.finish()?)?;
    Ok(())
}
