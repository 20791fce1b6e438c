//! The bodies of webhook messages: what each service reads, made from one digest of the events.
//!
//! No form gives a service text to interpret. Names may be `*bold*`, `<!channel>` or `[a](https://evil.example)`, so Slack
//! gets blocks of plain text, Teams runs of text (its text blocks are Markdown), and ntfy a message that is text unless a
//! header says otherwise.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::json::set;

/// The service that a webhook tells, which decides what its messages look like.
///
/// ```
/// use countersign_inbox::{Webhook, WebhookForm};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let webhook = Webhook::new("https://ntfy.example/asks-of-ann", b"a secret of 16 bytes")?.form(WebhookForm::Ntfy);
/// # let _ = webhook;
/// # Ok::<(), countersign_inbox::WebhookError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WebhookForm {
    /// Slack, and services that read its messages: `text`, `blocks` and `metadata`, which has the events as data.
    #[default]
    Slack,
    /// Microsoft Teams: a message with a card, as the workflow "When a Teams webhook request is received" takes it.
    Teams,
    /// ntfy: the topic is the last part of the address. A touch on the notification opens the ask.
    Ntfy,
    /// The events as data alone, for a program of yours.
    Json,
}

/// The events of one message.
pub(super) struct MessageParts {
    pub(super) title: String,
    /// The lines about each kind of event.
    pub(super) kinds: Vec<(&'static str, Vec<String>)>,
    /// The address of the ask, or of the inbox where there are several.
    pub(super) link: Option<String>,
    pub(super) data: Value,
}

impl WebhookForm {
    /// The address that a message is sent to, and its body.
    pub(super) fn message(self, url: &Url, parts: &MessageParts) -> (Url, Value) {
        match self {
            Self::Slack => (url.clone(), slack(parts)),
            Self::Teams => (url.clone(), teams(parts)),
            Self::Json => (url.clone(), parts.data.clone()),
            Self::Ntfy => ntfy(url, parts),
        }
    }
}

impl MessageParts {
    /// The lines of all kinds, as one text.
    fn text(&self) -> String {
        let kinds = self.kinds.iter().map(|(what, lines)| format!("{what}:\n{}", lines.join("\n")));
        kinds.collect::<Vec<_>>().join("\n")
    }
}

fn slack(parts: &MessageParts) -> Value {
    let mut blocks = vec![plain(&parts.title)];
    for (what, lines) in &parts.kinds {
        blocks.push(plain(&format!("{what}:\n{}", lines.join("\n"))));
    }
    let mut text = escaped(&parts.title);
    if let Some(link) = &parts.link {
        let link = escaped(link);
        let markup = format!("<{}|Open the inbox>", link.replace('|', "%7C"));
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": markup}}));
        text += &format!(" {link}");
    }
    let metadata = json!({"event_type": "countersign_asks", "event_payload": parts.data});
    json!({"text": text, "blocks": blocks, "metadata": metadata})
}

/// A block of text in which Slack reads no markup.
///
/// A tool named `*bold* <!channel>` is shown as that, and calls no one.
fn plain(text: &str) -> Value {
    // A block has at most 3 000 characters.
    let text = cut(text, 2_990);
    json!({"type": "section", "text": {"type": "plain_text", "text": text, "emoji": false}})
}

/// The three characters that are markup everywhere in Slack.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn teams(parts: &MessageParts) -> Value {
    let run = |text: &str, bold: bool| {
        let weight = if bold { "Bolder" } else { "Default" };
        let run = json!({"type": "TextRun", "text": cut(text, 5_000), "weight": weight});
        json!({"type": "RichTextBlock", "inlines": [run]})
    };
    let lines = parts.kinds.iter().flat_map(|(what, lines)| {
        [run(what, true)].into_iter().chain(lines.iter().map(|line| run(line, false)))
    });
    let body: Vec<_> = [run(&parts.title, true)].into_iter().chain(lines).collect();
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard", "version": "1.4", "body": body,
    });
    if let Some(link) = &parts.link {
        let open = json!({"type": "Action.OpenUrl", "title": "Open the inbox", "url": link});
        set(&mut card, "actions", json!([open]));
    }
    let kind = "application/vnd.microsoft.card.adaptive";
    let attachment = json!({"contentType": kind, "contentUrl": null, "content": card});
    json!({"type": "message", "attachments": [attachment]})
}

/// ntfy takes JSON at its root, with the topic in it.
fn ntfy(url: &Url, parts: &MessageParts) -> (Url, Value) {
    let mut root = url.clone();
    let topic = url.path_segments().and_then(|parts| parts.rev().find(|part| !part.is_empty()));
    let topic = topic.unwrap_or_default().to_owned();
    if let Ok(mut path) = root.path_segments_mut() {
        path.pop_if_empty().pop();
    }
    // A message has at most 4 096 bytes before ntfy makes a file of it.
    let mut body =
        json!({"topic": topic, "title": parts.title, "message": cut(&parts.text(), 900)});
    if let Some(link) = &parts.link {
        set(&mut body, "click", link.as_str().into());
    }
    (root, body)
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> MessageParts {
        MessageParts {
            title: "Approvals: 1 new".into(),
            kinds: vec![(
                "new",
                vec!["• *x* <!channel> [a](https://evil.example) (agent root)".into()],
            )],
            link: Some("https://inbox.example/#ask=0198".into()),
            data: json!({"delivery": "d", "new": {"count": 1}}),
        }
    }

    /// S10: a service gets text, and nothing that it would interpret.
    #[test]
    fn each_service_gets_its_form_and_names_stay_text() {
        let url = Url::parse("https://hooks.example/asks/topic-of-ann").unwrap();
        let sent = |form: WebhookForm| form.message(&url, &parts());

        let (to, slack) = sent(WebhookForm::Slack);
        assert_eq!(
            (to.as_str(), slack["blocks"][1]["text"]["type"].as_str()),
            (url.as_str(), Some("plain_text"))
        );
        assert!(!slack["text"].as_str().unwrap().contains('<'));

        let (_, teams) = sent(WebhookForm::Teams);
        let card = &teams["attachments"][0]["content"];
        assert_eq!(card["actions"][0]["url"], "https://inbox.example/#ask=0198");
        assert!(card["body"].as_array().unwrap().iter().all(|it| it["type"] == "RichTextBlock"));
        assert!(
            !teams.to_string().contains("TextBlock\",\"text"),
            "a text block would be Markdown"
        );

        let (to, ntfy) = sent(WebhookForm::Ntfy);
        assert_eq!(
            (to.as_str(), ntfy["topic"].as_str()),
            ("https://hooks.example/asks", Some("topic-of-ann"))
        );
        assert_eq!(ntfy["click"], "https://inbox.example/#ask=0198");
        assert!(
            ntfy.get("markdown").is_none()
                && ntfy["message"].as_str().unwrap().contains("(agent root)")
        );
        let root = Url::parse("https://ntfy.example/ann?auth=x").unwrap();
        let (to, ntfy) = WebhookForm::Ntfy.message(&root, &parts());
        assert_eq!((to.as_str(), &ntfy["topic"]), ("https://ntfy.example/?auth=x", &json!("ann")));

        assert_eq!(sent(WebhookForm::Json).1, json!({"delivery": "d", "new": {"count": 1}}));
    }
}
