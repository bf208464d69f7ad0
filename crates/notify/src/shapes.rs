//! Messages in the shapes that others expect. Text of agents cannot ring anybody's bell, make links or markup there.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::message::{Kind, Message};
use crate::send::Delivery;
use crate::sign::Key;
use crate::target::{Address, Secret};

/// What is posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Post {
    fn json(url: &str, body: &Value) -> Self {
        Self { url: url.to_owned(), headers: Vec::new(), body: body.to_string() }
    }
}

/// The body of a webhook.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A message of wiggum to a webhook, or to a command of one's own")]
pub(crate) struct Payload<'a> {
    /// Stays the same however often a message is sent: drop what you have seen.
    id: &'a str,
    /// `wiggum.` and the kind.
    #[serde(rename = "type")]
    kind: String,
    /// When it happened.
    timestamp: jiff::Timestamp,
    data: &'a Message,
}

impl<'a> Payload<'a> {
    pub(crate) fn of(delivery: &'a Delivery) -> Self {
        let Delivery { id, message } = delivery;
        Self { id, kind: format!("wiggum.{}", message.kind.name()), timestamp: message.at, data: message }
    }

    pub(crate) fn json(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// By the Standard Webhooks specification. The time is that of the attempt, which receivers compare with theirs.
pub(crate) fn webhook(to: &Address, key: Option<&Key>, delivery: &Delivery, now: i64) -> Post {
    let body = Payload::of(delivery).json();
    let mut headers = vec![("webhook-id", delivery.id.clone()), ("webhook-timestamp", now.to_string())];
    headers.extend(key.map(|key| ("webhook-signature", key.sign(&delivery.id, now, &body))));
    Post { url: to.url().to_owned(), headers, body }
}

/// Published as JSON at the root of the server, which headers could not do with every text.
pub(crate) fn ntfy(to: &Address, token: Option<&Secret>, message: &Message) -> Post {
    let (server, topic) = to.url().trim_end_matches('/').rsplit_once('/').unwrap_or((to.url(), ""));
    let mut body = json!({
        "topic": topic,
        "title": cut(&unlinked(&message.title), 250),
        "message": cut(&unlinked(&with_command(message)), 3500),
        "priority": priority(message.kind),
        "tags": [tag(message.kind)],
    });
    if let Some(link) = &message.link {
        body["click"] = json!(link);
    }
    let headers = token.map(|token| ("authorization", format!("Bearer {}", token.reveal())));
    Post { headers: headers.into_iter().collect(), ..Post::json(&format!("{server}/"), &body) }
}

/// For an incoming webhook. Only `plain_text`, in which nothing is markup.
pub(crate) fn slack(to: &Address, message: &Message) -> Post {
    let plain = |text: &str, most: usize| json!({ "type": "plain_text", "text": slack_text(&cut(text, most)), "emoji": false });
    let mut blocks = vec![json!({ "type": "header", "text": plain(&message.title, 140) })];
    let text = with_command(message);
    if !text.is_empty() {
        blocks.push(json!({ "type": "section", "text": plain(&text, 2000) }));
    }
    if let Some(link) = &message.link {
        let button = json!({ "type": "button", "text": plain("Open the page", 75), "url": link });
        blocks.push(json!({ "type": "actions", "elements": [button] }));
    }
    let fallback = slack_text(&cut(&unlinked(&message.title), 300));
    let body = json!({
        "text": fallback, "mrkdwn": false, "parse": "none", "link_names": false,
        "unfurl_links": false, "unfurl_media": false, "blocks": blocks,
    });
    Post::json(to.url(), &body)
}

pub(crate) fn discord(to: &Address, message: &Message) -> Post {
    let mut content = format!("**{}**", discord_text(&cut(&message.title, 200)));
    let text = with_command(message);
    if !text.is_empty() {
        // Every character may be escaped, and 2000 are taken.
        content.push_str(&format!("\n{}", discord_text(&cut(&text, 700))));
    }
    if let Some(link) = &message.link {
        content.push_str(&format!("\n<{link}>"));
    }
    const SUPPRESS_EMBEDS: u32 = 4;
    let body = json!({ "content": content, "flags": SUPPRESS_EMBEDS, "allowed_mentions": { "parse": [] } });
    Post::json(to.url(), &body)
}

/// Inside `pre` nothing is taken for a link, a name or a command.
pub(crate) fn telegram(to: &Address, token: &Secret, chat: &str, message: &Message) -> Post {
    let mut text = format!("<b>{}</b>", html_text(&cut(&unlinked(&message.title), 200)));
    let more = with_command(message);
    if !more.is_empty() {
        text.push_str(&format!("\n<pre>{}</pre>", html_text(&cut(&more, 2500))));
    }
    if let Some(link) = &message.link {
        text.push_str(&format!("\n{}", html_text(link)));
    }
    let url = format!("{}/bot{}/sendMessage", to.url().trim_end_matches('/'), token.reveal());
    let body = json!({
        "chat_id": chat, "text": text, "parse_mode": "HTML", "link_preview_options": { "is_disabled": true },
    });
    Post::json(&url, &body)
}

/// The text, and how to answer where there is no page to do it on.
pub(crate) fn with_command(message: &Message) -> String {
    match (&message.answer_with, &message.link) {
        (Some(command), None) if message.text.is_empty() => command.clone(),
        (Some(command), None) => format!("{}\n{command}", message.text),
        (Some(_), Some(_)) | (None, _) => message.text.clone(),
    }
}

fn priority(kind: Kind) -> u8 {
    match kind {
        Kind::Escalation | Kind::Failure | Kind::Budget => 4,
        Kind::Completion | Kind::Notice => 3,
        Kind::Answer | Kind::Transition => 2,
    }
}

fn tag(kind: Kind) -> &'static str {
    match kind {
        Kind::Escalation => "question",
        Kind::Answer => "speech_balloon",
        Kind::Completion => "white_check_mark",
        Kind::Budget => "moneybag",
        Kind::Failure => "x",
        Kind::Transition => "arrow_right",
        Kind::Notice => "information_source",
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Addresses stay readable, but nobody gets there by a slip of the thumb.
fn unlinked(text: &str) -> String {
    text.replace("://", ":\u{200b}//")
}

fn html_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Slack asks for the same three.
fn slack_text(text: &str) -> String {
    html_text(text)
}

fn discord_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for c in unlinked(text).chars() {
        if matches!(
            c,
            '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '#' | '[' | ']' | '(' | ')' | '<' | '@' | '-' | ':'
        ) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::trial;

    const HOSTILE: &str =
        "@everyone <!channel> <@U1> [x](https://evil.example) `a` **b** </pre><a href=\"x\">";

    fn hostile() -> Message {
        let message = trial("2026-11-15T12:00:00Z".parse().unwrap());
        Message {
            title: format!("main: {HOSTILE}"),
            text: HOSTILE.to_owned(),
            link: Some("http://127.0.0.1:7787/#/l/1".to_owned()),
            ..message
        }
    }

    fn to(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    fn body(post: &Post) -> Value {
        serde_json::from_str(&post.body).unwrap()
    }

    #[test]
    fn what_a_webhook_gets_is_as_the_schema_says() {
        let asked = crate::message::Asked {
            id: "q1".to_owned(),
            summary: "why?".to_owned(),
            context: String::new(),
            question: String::new(),
            options: vec!["a".to_owned()],
        };
        let message = Message { question: Some(asked), ..hostile() };
        let delivery = Delivery::new(wiggum_core::ids::LoopId(uuid::Uuid::nil()), "hook", message);
        let post = webhook(&to("https://h.example/x"), None, &delivery, 1);
        let body = body(&post);
        let schema = jsonschema::validator_for(&crate::schema()).unwrap();
        assert!(schema.is_valid(&body), "{body:#}");
        assert_eq!(post.headers[0], ("webhook-id", "00000000-0000-0000-0000-000000000000_0_hook".to_owned()));
        assert_eq!(body["type"], "wiggum.notice");
    }

    #[test]
    fn ntfy_gets_topic_priority_tags_and_a_click() {
        let post = ntfy(&to("https://ntfy.example/a/topic"), Some(&Secret::new("tk_1")), &hostile());
        assert_eq!(post.url, "https://ntfy.example/a/");
        assert_eq!(post.headers, [("authorization", "Bearer tk_1".to_owned())]);
        let body = body(&post);
        assert_eq!((&body["topic"], &body["priority"]), (&json!("topic"), &json!(3)));
        assert_eq!(body["click"], "http://127.0.0.1:7787/#/l/1");
        assert!(!body["message"].as_str().unwrap().contains("://"), "{body}");
    }

    #[test]
    fn slack_gets_plain_text_in_which_nobody_is_named() {
        let post = slack(&to("https://hooks.slack.example/services/T/B/X"), &hostile());
        let body = body(&post);
        let said = body.to_string();
        assert!(!said.contains('<') && !said.contains("mrkdwn\":true"), "{said}");
        assert_eq!(body["blocks"][0]["type"], "header");
        assert_eq!(body["blocks"][1]["text"]["type"], "plain_text");
        assert_eq!(body["blocks"][2]["elements"][0]["url"], "http://127.0.0.1:7787/#/l/1");
    }

    #[test]
    fn discord_mentions_nobody_and_shows_signs_as_signs() {
        let body = body(&discord(&to("https://discord.example/api/webhooks/1/x"), &hostile()));
        assert_eq!(body["allowed_mentions"], json!({ "parse": [] }));
        let content = body["content"].as_str().unwrap();
        assert!(content.contains(r"\@everyone \<!channel"), "{content}");
        assert!(content.contains(r"\[x\]\(https"), "{content}");
        assert!(!content.contains("https://evil") && content.contains("<http://127.0.0.1:7787/#/l/1>"));
        let long = Message { text: "*".repeat(5000), title: "_".repeat(900), ..hostile() };
        let post = discord(&to("https://discord.example/x"), &long);
        assert!(self::body(&post)["content"].as_str().unwrap().chars().count() <= 2000);
    }

    #[test]
    fn telegram_gets_what_agents_said_as_it_is() {
        let post = telegram(&to("https://api.telegram.example"), &Secret::new("1:abc"), "-100", &hostile());
        assert_eq!(post.url, "https://api.telegram.example/bot1:abc/sendMessage");
        let body = body(&post);
        assert_eq!(body["chat_id"], "-100");
        let text = body["text"].as_str().unwrap();
        assert!(text.contains("<pre>@everyone &lt;!channel&gt;"), "{text}");
        assert_eq!(text.matches("<pre>").count() + text.matches("</pre>").count(), 2, "{text}");
        assert!(!text.contains("<a "), "{text}");
    }

    #[test]
    fn who_has_no_page_is_told_the_command() {
        let message = Message {
            link: None,
            answer_with: Some("wiggum answer q1 skip".to_owned()),
            text: "why?".to_owned(),
            ..hostile()
        };
        assert_eq!(with_command(&message), "why?\nwiggum answer q1 skip");
    }
}
