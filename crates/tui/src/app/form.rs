//! A task as a form: a new one, or what is changed of one that is there.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wiggum_core::task::Task;
use wiggum_engine::desk::backlog::{NewTask, TaskChange};

use crate::app::Act;
use crate::app::dialog::{Outcome, typed};
use crate::app::editor::Editor;

pub(crate) const FIELDS: [&str; 4] = ["Title", "Description", "Priority", "Depends on"];

#[derive(Debug)]
pub(crate) struct Form {
    /// The task that is edited; none for a new one.
    pub(crate) task: Option<Box<Task>>,
    pub(crate) fields: [Editor; 4],
    pub(crate) at: usize,
    pub(crate) problem: Option<String>,
}

impl Form {
    pub(crate) fn new() -> Self {
        let fields = [false, true, false, false].map(|lines| Editor { lines, ..Editor::default() });
        Self { task: None, fields, at: 0, problem: None }
    }

    pub(crate) fn of(task: &Task) -> Self {
        let depends_on: Vec<&str> = task.depends_on.iter().map(|id| id.as_str()).collect();
        let fields = [
            Editor::with(&task.title, false),
            Editor::with(&task.description, true),
            Editor::with(&task.priority.to_string(), false),
            Editor::with(&depends_on.join(", "), false),
        ];
        Self { task: Some(Box::new(task.clone())), fields, at: 0, problem: None }
    }

    pub(crate) fn editor_mut(&mut self) -> &mut Editor {
        &mut self.fields[self.at]
    }

    pub(crate) fn key(&mut self, event: &KeyEvent) -> Outcome {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let last = FIELDS.len() - 1;
        match event.code {
            KeyCode::Char('s') if control => return self.save(),
            KeyCode::Enter if event.modifiers.is_empty() && self.at == last => return self.save(),
            KeyCode::Enter if event.modifiers.is_empty() => self.at += 1,
            KeyCode::Tab | KeyCode::Down => self.at = (self.at + 1) % FIELDS.len(),
            KeyCode::BackTab | KeyCode::Up => self.at = self.at.checked_sub(1).unwrap_or(last),
            _ => return typed(self.editor_mut(), event),
        }
        Outcome::Stay
    }

    fn save(&mut self) -> Outcome {
        match self.act() {
            Ok(Some(act)) => Outcome::Do(act),
            Ok(None) => Outcome::Close,
            Err((field, problem)) => {
                (self.at, self.problem) = (field, Some(problem));
                Outcome::Stay
            }
        }
    }

    /// What is to be done; nothing where nothing was changed.
    fn act(&self) -> Result<Option<Act>, (usize, String)> {
        let [title, description, priority, depends_on] = &self.fields;
        let title = title.text.trim().to_owned();
        if title.is_empty() {
            return Err((0, "say in one line what is to be done".to_owned()));
        }
        let priority = match priority.text.trim() {
            "" => None,
            text => Some(text.parse::<i64>().map_err(|_| (2, "a priority is a whole number".to_owned()))?),
        };
        let description = description.text.trim_end().to_owned();
        let ids = depends_on.text.split([',', ' ']).map(str::trim).filter(|id| !id.is_empty());
        let depends_on: Vec<String> = ids.map(str::to_owned).collect();
        if let Some(task) = &self.task {
            let before: Vec<&str> = task.depends_on.iter().map(|id| id.as_str()).collect();
            // The form shows texts without what terminals cannot show; that alone is no change.
            let change = TaskChange {
                title: Some(title).filter(|title| *title != crate::text::line(&task.title)),
                description: Some(description)
                    .filter(|text| *text != crate::text::plain(&task.description).trim_end()),
                priority: priority.filter(|priority| *priority != task.priority),
                depends_on: Some(depends_on).filter(|ids| *ids != before),
            };
            let task = task.id.to_string();
            return Ok((!change.is_empty()).then(|| Act::Change { task, change: Box::new(change) }));
        }
        Ok(Some(Act::Add(Box::new(NewTask {
            title,
            description,
            priority,
            depends_on,
            ..NewTask::default()
        }))))
    }
}
