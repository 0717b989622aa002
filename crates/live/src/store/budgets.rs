//! The limits that operators have set of parts of the machine, such as feeds. That of the machine is in the table `state`.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::error::Fault;
use super::schema::PART_BUDGET;
use super::seal::sealed;
use crate::job::Scope;

pub(super) fn read(connection: &Connection) -> Result<BTreeMap<Scope, String>, Fault> {
    let rows = PART_BUDGET.rows(connection, "", (), |row| {
        let (kind, name, budget): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        match Scope::of(&kind, name) {
            Some(scope) => Ok((scope, budget)),
            None => Err(Fault::Damaged(format!("a budget is of the unknown kind '{kind}'"))),
        }
    })?;
    Ok(rows.into_iter().collect())
}

pub(super) fn write(
    connection: &Connection,
    budgets: &[(Scope, Option<String>)],
) -> Result<(), Fault> {
    for (scope, budget) in budgets {
        let (kind, name) = (scope.kind(), scope.name());
        connection
            .execute("DELETE FROM part_budget WHERE kind = ?1 AND name = ?2", (kind, name))?;
        if let Some(budget) = budget {
            let texts = [kind, name, budget].map(|text| Value::Text(text.to_owned()));
            connection.execute(&PART_BUDGET.insert(), params_from_iter(&sealed(texts)))?;
        }
    }
    Ok(())
}
