//! The program `busbar`; see the library for everything it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    busbar::cli::main()
}
