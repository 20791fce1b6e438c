//! Questions that the client itself asks, in the session in which the call was made.
//!
//! A person who sits in front of Claude Code is asked there, and needs no inbox. The hook answers "ask", and has ended
//! when the person answers: only the client knows the answer. So we count nothing as approved before the client
//! reports that the call has ended as it was asked about:
//!
//! | the client reports | recorded |
//! |---|---|
//! | the end of the call, with the arguments that were asked about | an ask, approved in the client, and executed |
//! | the end of a call with other arguments | [ran without approval](super::unapproved) |
//! | nothing: the person said no, or nothing was asked | nothing |
//!
//! In the meantime we note the question in a file of the user's state directory. A grant answers before the client
//! asks, and so does an ask of an equal call that is open in the inbox.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::allowed::AllowedCalls;
use super::key::{self, CallKey};
use super::reasons::reasons;
use crate::hook::clients::Client;
use crate::hook::judging::vocabulary::Normal;
use crate::hook::payload::{Ending, HookCall};
use crate::hook::reply::HookReply;
use countersign::args::Args;
use countersign::decision::Question;
use countersign::deferred::Answer;
use countersign::deferred::metadata::{APPROVAL_POLICY, BLOCKED, EVERY_TIME};
use countersign::error::with_causes;
use countersign::ledger::{Ask, AskState, Claimed, Ledger};

/// The number of attempts to take the next number, where equal calls take numbers at the same time.
const MAX_TRIES: u64 = 8;

/// The time for which the claim of a call lasts after it has run.
const LEASE: Duration = Duration::from_secs(60);

/// The question that the client was told to ask.
#[derive(Serialize, Deserialize)]
pub(crate) struct ClientQuestion {
    args: Args,
    questions: Vec<Question>,
}

/// Returns `true` if the client may ask these questions in the hook's place: it has a question of its own, and none of
/// them has to be asked every time, is blocked, or is about what acts on the client itself.
pub(crate) fn may_ask(client: Client, questions: &[Question]) -> bool {
    let is_for_a_person_here = |question: &Question| {
        let metadata = question.metadata();
        let is_every_time = metadata.get(EVERY_TIME) == Some(&json!(true));
        let is_blocked = metadata.get(APPROVAL_POLICY) == Some(&json!(BLOCKED));
        let mut keys = question.key().split(' ');
        let is_own = question.layer() == "hook" && keys.any(|key| OF_CLIENT.contains(&key));
        !is_every_time && !is_blocked && !is_own
    };
    let mut of_layers = questions.iter().filter(|it| !is_origin(it)).peekable();
    client.asks() && of_layers.peek().is_some() && of_layers.all(is_for_a_person_here)
}

/// The hook's own questions about what may act on the client, too.
const OF_CLIENT: &[&str] = &["environment", "root"];

/// Tells the client to ask, and notes about what. `None` where the question cannot be noted, so that the end of the call
/// would not be known as approved.
pub(crate) fn ask(
    notes: &AllowedCalls,
    call: &HookCall,
    args: &Args,
    questions: &[Question],
) -> Option<HookReply> {
    let asked = ClientQuestion { args: args.clone(), questions: questions.to_vec() };
    notes.note_asked(call, &serde_json::to_string(&asked).ok()?)?;
    Some(HookReply::ask(call.client, &reasons(questions)))
}

/// The question that the client was told to ask about a call that has ended with these arguments; the note is taken away.
pub(crate) fn asked(notes: &AllowedCalls, call: &HookCall) -> Option<ClientQuestion> {
    serde_json::from_str(&notes.take_asked(call)?).ok()
}

/// Records that the call was approved in the client, and has ended. The error is a remark.
pub(crate) async fn approved(
    ledger: &Ledger,
    call: &HookCall,
    normal: &Normal,
    principal: Option<&str>,
    asked: ClientQuestion,
    how: Ending,
) -> Result<(), String> {
    let of_layers: Vec<_> = asked.questions.iter().filter(|it| !is_origin(it)).cloned().collect();
    let key = CallKey::new(call, normal, &asked.args, &of_layers, principal);
    let (tool, by) = (normal.shown(), format!("the question of {}", call.client));
    let failed = |problem: &str| {
        format!(
            "`{}` of {} was approved in the client, which was not recorded: {problem}",
            call.tool.escape_debug(),
            call.client
        )
    };
    let store = |error| failed(&with_causes(&error));
    let mut tries = 0;
    for n in 1.. {
        let ask: Ask = key.ask(n, &tool).with_args(asked.args.clone());
        let ask = ask.with_questions(asked.questions.iter().cloned());
        let ask = principal.iter().fold(ask, |ask, name| ask.with_principal(*name));
        let id = ask.id().to_owned();
        if ledger.get(&id).await.map_err(store)?.is_some() {
            continue;
        }
        let parked = ledger.park(ask).await.map_err(store)?;
        let yes = Answer::Approve { args: None };
        ledger.decide(&id, &parked.fingerprint, &by, yes).await.map_err(store)?;
        let worker = key::worker(call, &call.args);
        if let Claimed::Claimed { token } =
            ledger.claim(&id, &worker, LEASE).await.map_err(store)?
        {
            let outcome =
                json!({"ended": how.as_str(), "as_approved": true, "asked_in_client": true});
            ledger.settle(&id, token, outcome).await.map_err(store)?;
            return Ok(());
        }
        tries += 1;
        if tries == MAX_TRIES || parked.state == AskState::Closed {
            break;
        }
    }
    Err(failed("equal calls took its place"))
}

fn is_origin(question: &Question) -> bool {
    question.layer() == "hook" && question.metadata().contains_key("hook")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::may_ask;
    use crate::hook::clients::Client;
    use countersign::decision::Question;

    fn question(layer: &str, key: &str, metadata: &Value) -> Question {
        let metadata = metadata.clone();
        let it = json!({"layer": layer, "key": key, "reason": "sure?", "metadata": metadata});
        serde_json::from_value(it).unwrap()
    }

    /// P3: "Nor do they ask in the session about a call that is blocked, or about the environment of the client."
    #[test]
    fn what_no_one_may_approve_in_the_session_is_not_asked_about_there() {
        let rule = question("rules", "default", &json!({}));
        let origin = question("hook", "origin /src", &json!({"hook": {}}));
        let asked = [rule.clone(), origin.clone()];
        assert!(may_ask(Client::Claude, &asked) && may_ask(Client::Copilot, &asked));
        assert!(!may_ask(Client::Codex, &asked), "it has no question of its own");
        assert!(!may_ask(Client::Claude, std::slice::from_ref(&origin)), "nothing is asked");
        for not_here in [
            question("rules", "blocked", &json!({"approval_policy": "blocked"})),
            question("rules", "floor", &json!({"every_time": true})),
            question("hook", "environment", &json!({})),
            question("hook", "root", &json!({})),
        ] {
            let asked = [rule.clone(), not_here, origin.clone()];
            assert!(!may_ask(Client::Claude, &asked), "{asked:?}");
        }
    }
}
