//! Many short jobs, one after another: what is left of them in memory.

use crate::cycles::House;
use crate::resident;
use crate::story::setup;

/// So many wait at a time.
const AT_ONCE: usize = 200;

pub(crate) fn measure(jobs: usize) {
    println!("\n### Memory over {jobs} short jobs\n");
    println!("| jobs that are over | resident MiB |\n|---:|---:|");
    let mut house = House::new(setup("easy"));
    house.submit(AT_ONCE);
    let (mut over, mut shown) = (0, 0);
    while over < jobs {
        let ended = house.end_all();
        house.submit(ended);
        over += ended;
        if over >= shown {
            println!("| {over} | {:.1} |", resident(std::process::id()));
            shown += jobs / 10;
        }
    }
}
