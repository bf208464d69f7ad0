//! A look at a vault from outside.

use std::collections::BTreeMap;

use wiggum_engine::EngineError;
use wiggum_engine::checkout::Checkout;
use wiggum_store::Store;

use super::problems::{is_told_of, problem_name};
use super::{Rules, carry, identity};
use crate::copies::{Origin, is_copy_of, origin};
use crate::dashboard::Row;
use crate::layout::{APPROVED, Vault, VaultError};
use crate::plans::{Approved, Look, is_note, look, stem};
use crate::projection::{Snapshot, fold};

/// The approved plans of a vault as their journals tell it, whether somebody looks after it or not.
pub fn survey(vault: &Vault, checkout: &Checkout, rules: &Rules) -> Result<Vec<Row>, VaultError> {
    vault.require_folders()?;
    let dir = checkout.find().map_err(EngineError::from)?;
    let store = dir.map(|dir| Store::open_existing(&dir.database())).transpose()?.flatten();
    let names: Vec<String> = vault.tree(APPROVED).files.into_iter().filter(|name| is_note(name)).collect();
    let looks: BTreeMap<&String, Look> = names.iter().map(|name| (name, look(vault, name))).collect();
    let mut rows = Vec::new();
    for (name, look) in &looks {
        rows.extend(match look {
            Look::Gone | Look::NotStarted => None,
            Look::Broken(_) => Some(refused(name, "broken", rules)),
            Look::Plan(plan) if is_copy(name, plan, &looks) => Some(refused(name, "copy", rules)),
            Look::Plan(plan) => {
                let row = row(vault, rules, plan, store.as_ref())?;
                // Whoever tried to carry it out said why that was not possible.
                let told = is_told_of(vault, name) || row.status == "queued" && plan.miscounted.is_some();
                Some(if told { not_begun(row, name) } else { row })
            }
        });
    }
    Ok(rows)
}

fn is_copy(name: &str, plan: &Approved, looks: &BTreeMap<&String, Look>) -> bool {
    let is_same = |look: &Look| matches!(look, Look::Plan(other) if other.id() == plan.id());
    match origin(name) {
        Origin::Conflict { .. } => true,
        Origin::Copy { of } if !plan.header.says_id && looks.contains_key(&of) => true,
        Origin::Copy { .. } | Origin::Own => {
            looks.iter().any(|(other, look)| is_same(look) && is_copy_of(name, other))
        }
    }
}

fn row(vault: &Vault, rules: &Rules, plan: &Approved, store: Option<&Store>) -> Result<Row, VaultError> {
    let record = store.map(|store| store.find_loop(&identity(vault, plan.id()))).transpose()?.flatten();
    if let Some((store, record)) = store.zip(record) {
        let (state, story) = fold(store, Some(record.id))?;
        let limit = carry::limit(rules, plan, state.policy.limits.granted);
        return Ok(Snapshot::of(&state).row(vault, &story, plan, limit));
    }
    Ok(Row {
        plan_id: plan.id().to_owned(),
        file: plan.stem().to_owned(),
        status: "queued".to_owned(),
        done: plan.done,
        total: plan.total,
        iterations_used: plan.header.iterations_used.unwrap_or(0),
        max_iterations: carry::limit(rules, plan, None),
        needs_action: None,
    })
}

fn not_begun(row: Row, name: &str) -> Row {
    Row { status: "broken".to_owned(), needs_action: Some(problem_name(name)), ..row }
}

fn refused(name: &str, status: &str, rules: &Rules) -> Row {
    Row {
        plan_id: stem(name).to_owned(),
        file: stem(name).to_owned(),
        status: status.to_owned(),
        done: 0,
        total: 0,
        iterations_used: 0,
        max_iterations: rules.max_iterations,
        needs_action: Some(problem_name(name)),
    }
}
