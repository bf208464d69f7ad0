//! Which turn answers a request, and what it then says exactly.

use std::collections::BTreeMap;

use regex_automata::meta::Regex;
use serde_json::Value;

use crate::request::Request;
use crate::scenario::{Repeat, Scenario, Turn, Usage, When};
use crate::stub::{Choice, StartError};

/// A scenario and how far it has come.
pub(crate) struct Running {
    scenario: Scenario,
    /// The guard of each turn.
    guards: Vec<Option<Regex>>,
    /// How often each turn was taken, by session.
    taken: BTreeMap<String, Vec<usize>>,
}

pub(crate) struct Chosen {
    pub(crate) choice: Choice,
    pub(crate) turn: Turn,
    /// What it uses if it does not say.
    pub(crate) usage: Usage,
}

impl Running {
    pub(crate) fn new(scenario: Scenario) -> Result<Self, StartError> {
        let guard = |turn: &Turn| turn.when.as_ref().map(compile).transpose();
        let guards = scenario.turns.iter().map(guard).collect::<Result<_, _>>()?;
        Ok(Self { scenario, guards, taken: BTreeMap::new() })
    }

    pub(crate) fn choose(&mut self, request: &Request) -> Chosen {
        let choice = self.take(request);
        let turn = match choice {
            Choice::Turn(index) => &self.scenario.turns[index],
            Choice::Side => &self.scenario.side,
            Choice::Fallback => &self.scenario.fallback,
        };
        Chosen { choice, turn: turn.clone(), usage: self.scenario.usage }
    }

    fn take(&mut self, request: &Request) -> Choice {
        if request.tools.is_empty() && !self.scenario.side_takes_turns {
            return Choice::Side;
        }
        let session = if self.scenario.per_session { request.session.as_str() } else { "" };
        let turns = &self.scenario.turns;
        let taken = self.taken.entry(session.to_owned()).or_insert_with(|| vec![0; turns.len()]);
        let fits = |index: usize, turn: &Turn, times: usize| {
            let available = match turn.repeat {
                Repeat::Times(most) => times < most,
                Repeat::Forever => true,
            };
            let guard = turn.when.as_ref().zip(self.guards[index].as_ref());
            available && guard.is_none_or(|(when, regex)| regex.is_match(&when.place(request)))
        };
        for (index, turn) in turns.iter().enumerate() {
            if fits(index, turn, taken[index]) {
                taken[index] += 1;
                return Choice::Turn(index);
            }
        }
        Choice::Fallback
    }
}

/// What agents send has many lines, so a dot matches their ends.
fn compile(when: &When) -> Result<Regex, StartError> {
    let pattern = when.pattern();
    Regex::new(&format!("(?s){pattern}"))
        .map_err(|source| StartError::Pattern { pattern: pattern.to_owned(), source: Box::new(source) })
}

impl When {
    fn pattern(&self) -> &str {
        match self {
            Self::Last(pattern)
            | Self::First(pattern)
            | Self::Anywhere(pattern)
            | Self::System(pattern)
            | Self::Model(pattern)
            | Self::ToolResult(pattern) => pattern,
        }
    }

    fn place(&self, request: &Request) -> String {
        match self {
            Self::Last(_) => request.last().to_owned(),
            Self::First(_) => request.user.first().cloned().unwrap_or_default(),
            Self::Anywhere(_) => request.user.join("\n"),
            Self::System(_) => request.system.clone(),
            Self::Model(_) => request.model.clone(),
            Self::ToolResult(_) => request.tool_result().to_owned(),
        }
    }
}

impl Turn {
    /// With what stands for something of the request replaced by it.
    pub(crate) fn filled(mut self, request: &Request, number: usize) -> Self {
        let number = number.to_string();
        let values = [
            ("${last}", request.last()),
            ("${n}", number.as_str()),
            ("${cwd}", request.directory().unwrap_or(".")),
        ];
        let fill = |text: &mut String| {
            for (name, value) in values {
                if text.contains(name) {
                    *text = text.replace(name, value);
                }
            }
        };
        fill(&mut self.text);
        fill(&mut self.thinking);
        for tool in &mut self.tools {
            fill_value(&mut tool.input, &fill);
            tool.text.iter_mut().for_each(fill);
        }
        self
    }
}

fn fill_value(value: &mut Value, fill: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => fill(text),
        Value::Array(values) => values.iter_mut().for_each(|value| fill_value(value, fill)),
        Value::Object(values) => values.values_mut().for_each(|value| fill_value(value, fill)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::Running;
    use crate::request::Request;
    use crate::scenario::{Scenario, Turn, When};
    use crate::stub::Choice;
    use serde_json::json;

    fn request(session: &str, said: &str) -> Request {
        Request {
            session: session.to_owned(),
            tools: vec!["Bash".to_owned()],
            user: vec!["begin".to_owned(), said.to_owned()],
            system: "<cwd>/home/ralph/p</cwd>".to_owned(),
            ..Request::default()
        }
    }

    #[track_caller]
    fn check(scenario: Scenario, requests: &[(&str, &str)], expected: &[Choice]) {
        let mut running = Running::new(scenario).unwrap();
        let choices: Vec<Choice> =
            requests.iter().map(|(session, said)| running.choose(&request(session, said)).choice).collect();
        assert_eq!(choices, expected);
    }

    #[test]
    fn turns_are_taken_in_order_and_as_often_as_they_may() {
        let turns = [Turn::says("a"), Turn::says("b").times(2)];
        let expected = [Choice::Turn(0), Choice::Turn(1), Choice::Turn(1), Choice::Fallback];
        check(turns.into(), &[("", ""); 4], &expected);
        let turns = [Turn::says("a").forever(), Turn::says("never")];
        check(turns.into(), &[("", ""); 3], &[Choice::Turn(0); 3]);
    }

    #[test]
    fn a_turn_that_does_not_fit_stays_available() {
        let guarded = Turn::says("a").when(When::Last("go.*on".to_owned()));
        let requests = [("", "stop"), ("", "go\non"), ("", "stop")];
        let expected = [Choice::Turn(1), Choice::Turn(0), Choice::Fallback];
        check([guarded, Turn::says("b")].into(), &requests, &expected);
    }

    #[test]
    fn a_session_may_have_all_turns_for_itself() {
        let requests = [("x", ""), ("y", ""), ("x", "")];
        let one = || Scenario::from([Turn::says("a")]);
        check(one().per_session(), &requests, &[Choice::Turn(0), Choice::Turn(0), Choice::Fallback]);
        check(one(), &requests, &[Choice::Turn(0), Choice::Fallback, Choice::Fallback]);
    }

    #[test]
    fn requests_without_tools_take_no_turn_unless_told_so() {
        let mut running = Running::new([Turn::says("a")].into()).unwrap();
        let without_tools = Request::default();
        assert_eq!(running.choose(&without_tools).choice, Choice::Side);
        let scenario = Scenario { side_takes_turns: true, ..[Turn::says("a")].into() };
        assert_eq!(Running::new(scenario).unwrap().choose(&without_tools).choice, Choice::Turn(0));
    }

    #[test]
    fn a_broken_guard_is_told_at_the_start() {
        assert!(Running::new([Turn::says("a").when(When::Last("(".to_owned()))].into()).is_err());
    }

    #[test]
    fn what_the_agent_said_is_put_into_the_answer() {
        let turn = Turn::calls("Write", json!({"file_path": "${cwd}/a", "content": ["${last}", 1]}));
        let turn = turn.filled(&request("", "hello"), 7);
        assert_eq!(turn.tools[0].input, json!({"file_path": "/home/ralph/p/a", "content": ["hello", 1]}));
        assert_eq!(Turn::says("answer ${n}").filled(&request("", ""), 7).text, "answer 7");
    }
}
