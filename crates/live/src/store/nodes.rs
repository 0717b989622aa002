//! The nodes that are not on. Whether a node is off decides what others may draw, so it is written before anything
//! follows from it, as everything is.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::error::Fault;
use super::schema::NODE;
use super::seal::sealed;
use busbar_core::ledger::SwitchState;

pub(super) fn read(connection: &Connection) -> Result<BTreeMap<u32, SwitchState>, Fault> {
    let rows = NODE.rows(connection, "", (), |row| {
        let (node, name): (u32, String) = (row.get(0)?, row.get(1)?);
        match SwitchState::ALL.into_iter().find(|state| state.to_string() == name) {
            Some(state) => Ok((node, state)),
            None => Err(Fault::Damaged(format!("node {node} is in the unknown state '{name}'"))),
        }
    })?;
    Ok(rows.into_iter().collect())
}

pub(super) fn write(
    connection: &Connection,
    nodes: &[(u32, Option<SwitchState>)],
) -> Result<(), Fault> {
    for (node, state) in nodes {
        connection.execute("DELETE FROM node WHERE node = ?1", (node,))?;
        if let Some(state) = state {
            let row = sealed([Value::Integer((*node).into()), Value::Text(state.to_string())]);
            connection.execute(&NODE.insert(), params_from_iter(&row))?;
        }
    }
    Ok(())
}
