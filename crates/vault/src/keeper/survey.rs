//! A look at a vault from outside.

use wiggum_engine::state_dir::StateDir;
use wiggum_store::Store;

use super::{Rules, carry, identity};
use crate::dashboard::Row;
use crate::layout::{APPROVED, Vault, VaultError};
use crate::plans::{Approved, Look, is_note, look, stem};
use crate::projection::{Snapshot, fold};

/// The approved plans of a vault as their journals tell it, whether somebody looks after it or not.
pub fn survey(vault: &Vault, rules: &Rules) -> Result<Vec<Row>, VaultError> {
    let store = Store::open_existing(&StateDir::of(vault.root()).database())?;
    let mut rows = Vec::new();
    for name in vault.names(APPROVED).iter().filter(|name| is_note(name)) {
        let (id, total, limit, status) = match look(vault, name) {
            Look::Gone => continue,
            Look::Broken(_) => (stem(name).to_owned(), 0, rules.max_iterations, "broken"),
            Look::Plan(plan) => {
                match store.as_ref().map(|store| told(vault, rules, &plan, store)).transpose()? {
                    Some(Some(row)) => {
                        rows.push(row);
                        continue;
                    }
                    Some(None) | None => {
                        (plan.id().to_owned(), plan.total, carry::limit(rules, &plan), "queued")
                    }
                }
            }
        };
        rows.push(Row {
            plan_id: id,
            file: stem(name).to_owned(),
            status: status.to_owned(),
            done: 0,
            total,
            iterations_used: 0,
            max_iterations: limit,
            needs_action: (status == "broken").then(|| format!("plan_problem_{}", stem(name))),
        });
    }
    Ok(rows)
}

fn told(vault: &Vault, rules: &Rules, plan: &Approved, store: &Store) -> Result<Option<Row>, VaultError> {
    let Some(record) = store.find_loop(&identity(vault, plan.id()))? else { return Ok(None) };
    let (state, story) = fold(store, Some(record.id))?;
    Ok(Some(Snapshot::of(&state).row(&story, plan, carry::limit(rules, plan))))
}
