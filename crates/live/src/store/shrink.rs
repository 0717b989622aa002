//! Pages of the file that nothing is in any more, given back to the disk. SQLite moves pages from the end of
//! the file into the gaps; a few at a time, so that nobody waits for it.

use rusqlite::Connection;

/// So many free pages of 4 KiB are kept for what is written next,
const SPARE: u64 = 256;

/// and so many in proportion to those in use.
const SPARE_SHARE: u64 = 4;

/// Lets the file shrink, if it was made when that was not wanted. That takes as long as it takes to copy
/// it, once.
pub(super) fn enable(connection: &Connection) -> rusqlite::Result<()> {
    // 2 is `INCREMENTAL`.
    match number(connection, "auto_vacuum")? {
        2 => Ok(()),
        _ => connection.execute_batch("VACUUM"),
    }
}

/// Gives back free pages beyond those that are kept: at most so many. Says whether there are more.
pub(super) fn shrink(connection: &Connection, at_most: u32) -> rusqlite::Result<bool> {
    let (all, free) = (number(connection, "page_count")?, number(connection, "freelist_count")?);
    let spare = SPARE.max((all - free.min(all)) / SPARE_SHARE);
    let too_many = free.saturating_sub(spare);
    let now = too_many.min(u64::from(at_most));
    if now > 0 {
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({now})"))?;
        // Each step gives one page back.
        let mut steps = statement.query(())?;
        while steps.next()?.is_some() {}
    }
    Ok(too_many > now)
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<u64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}
