//! The demonstration: a run whose processes are killed while a person has to decide.

use std::time::Instant;

use countersign::BoxError;
use serde_json::json;

use crate::agent::TASK;
use crate::stage::Stage;

/// Plays it, and says what happens.
pub(crate) async fn play() -> Result<(), BoxError> {
    let began = Instant::now();
    let say = |text: String| println!("{:5.1} s  {text}", began.elapsed().as_secs_f32());
    let folder = tempfile::tempdir()?;
    let mut stage = Stage::start(folder.path(), &std::env::current_exe()?).await?;
    stage.start_service(&[]).await?;
    say("Restate's server and the service are running.".into());

    stage.begin("demo", TASK).await?;
    let pending = stage.pending("demo", 1).await?.remove(0);
    say(format!("The run waits for a decision: {} {}", pending["tool"], pending["args"]));

    stage.kill(true);
    say("Both processes are killed (kill -9).".into());
    stage.start_server().await?;
    stage.start_service(&[]).await?;
    say("Both are running again.".into());

    let yes = json!({"verdict": "approve"});
    let no = json!({"verdict": "deny", "message": "ask the shop first"});
    say(format!("ann approves:  {}", stage.decide(&pending, "ann", yes).await?));
    say(format!("bob denies:    {}", stage.decide(&pending, "bob", no).await?));

    let result = stage.result("demo").await?;
    say(format!("The run has ended: {}", result.replace('\n', "; ")));
    let steps = stage.steps();
    let count = |step: &str| steps.iter().filter(|it| *it == step).count();
    let (model, paid) = (count("model") + count("ended"), count("done"));
    say(format!(
        "The model was asked {model} times, for two responses, and the refund was paid {paid} time."
    ));
    Ok(())
}
