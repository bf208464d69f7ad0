//! Prompts for a client's own session, in the words of our slash commands.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use crate::refusal::Refusal;

/// The longest argument that becomes part of a prompt.
const MAX_ARGUMENT: usize = 32 * 1024;

pub(crate) fn all() -> Vec<Prompt> {
    let argument = |name: &str, description: &str, required: bool| {
        PromptArgument::new(name).with_description(description).with_required(required)
    };
    vec![
        Prompt::new(
            "ralph-loop",
            Some("Work on a task until it is really done"),
            Some(vec![
                argument("prompt", "The task, in your own words", true),
                argument("max_iterations", "Give up after so many rounds; 0 or nothing means never", false),
                argument("completion_promise", "The words that say it is done; DONE if left out", false),
            ]),
        )
        .with_title("Ralph loop"),
        Prompt::new(
            "plan",
            Some("Turn a goal into a backlog that a loop can work on"),
            Some(vec![
                argument("goal", "What is to be reached", true),
                argument("backlog", "The file to write; PRD.json if left out", false),
            ]),
        )
        .with_title("Plan a backlog"),
    ]
}

pub(crate) fn make(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, Refusal> {
    let text = match name {
        "ralph-loop" => ralph_loop(arguments)?,
        "plan" => plan(arguments)?,
        _ => {
            return Err(Refusal::new(format!("no prompt `{name}`")).hint("there are: ralph-loop, plan"));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

fn ralph_loop(arguments: &JsonObject) -> Result<String, Refusal> {
    let prompt = required(arguments, "prompt")?;
    let promise = given(arguments, "completion_promise")?.unwrap_or_else(|| "DONE".to_owned());
    if promise.contains(['<', '>', '\n']) {
        return Err(Refusal::new("a completion promise is one line without `<` and `>`"));
    }
    let limit = match given(arguments, "max_iterations")?.as_deref() {
        None | Some("" | "0") => String::new(),
        Some(number) => {
            let number: u32 = number
                .parse()
                .map_err(|_| Refusal::new(format!("max_iterations needs a whole number, not `{number}`")))?;
            format!(" After {number} rounds without success, stop and say what is missing.")
        }
    };
    Ok(format!(
        "Work on this task until all of it is really done.\n\n{prompt}\n\nWork in rounds: do the next piece, \
         run the checks, look at what is still missing, and begin again.{limit} When every part of the task is \
         done and you saw the checks pass, and not before, end with the line\n\n<promise>{promise}</promise>\n\n\
         Do not say it to get out of the loop: it has to be true. For a loop that checks this by itself and \
         survives restarts, put the task into a backlog with `add_task` and call `start_loop`.\n"
    ))
}

fn plan(arguments: &JsonObject) -> Result<String, Refusal> {
    let goal = required(arguments, "goal")?;
    let backlog = given(arguments, "backlog")?.unwrap_or_else(|| "PRD.json".to_owned());
    Ok(format!(
        "Turn this goal into a backlog for a Wiggum loop.\n\n{goal}\n\nLook at the repository first, so that the \
         tasks fit what is there. Then write them down, with `add_task` or in {backlog}:\n\n- Each task is one \
         change that an agent with a fresh context can finish and check in one sitting.\n- The title says what is \
         true when it is done; the description names the files and decisions it needs.\n- The criteria are things \
         one can see: a command that passes, a page that shows something. No criterion says \"works well\".\n\
         - `depends_on` names tasks that have to come first, and only those.\n- Risky and uncertain work comes \
         early.\n\nShow the list and ask whether it is right before anything is started. `list_tasks` shows what \
         is in the backlog, `start_loop` runs it.\n"
    ))
}

fn required(arguments: &JsonObject, name: &str) -> Result<String, Refusal> {
    given(arguments, name)?.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        Refusal::new(format!("`{name}` is missing")).hint("the prompt's arguments say what it is")
    })
}

fn given(arguments: &JsonObject, name: &str) -> Result<Option<String>, Refusal> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= MAX_ARGUMENT => Ok(Some(text.trim().to_owned())),
        Some(Value::String(_)) => Err(Refusal::new(format!("`{name}` is longer than {MAX_ARGUMENT} bytes"))),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(Refusal::new(format!("`{name}` is no text"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(name: &str, arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let made = make(name, &arguments).map_err(|refusal| refusal.message)?;
        let message = serde_json::to_value(&made.messages[0]).unwrap();
        Ok(message["content"]["text"].as_str().unwrap().to_owned())
    }

    #[test]
    fn a_loop_says_its_task_its_limit_and_its_promise() {
        let text = made(
            "ralph-loop",
            json!({"prompt": "Build it", "max_iterations": "7", "completion_promise": "SHIPPED"}),
        )
        .unwrap();
        for part in ["Build it", "After 7 rounds", "<promise>SHIPPED</promise>"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(made("ralph-loop", json!({"prompt": "x"})).unwrap().contains("<promise>DONE</promise>"));
    }

    #[test]
    fn nonsense_is_refused_with_words() {
        for (name, arguments, expected) in [
            ("ralph-loop", json!({}), "`prompt` is missing"),
            ("ralph-loop", json!({"prompt": "x", "max_iterations": "many"}), "a whole number"),
            ("ralph-loop", json!({"prompt": "x", "completion_promise": "<b>"}), "one line"),
            ("plan", json!({"goal": ["x"]}), "no text"),
            ("other", json!({}), "no prompt `other`"),
        ] {
            let refused = made(name, arguments).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
