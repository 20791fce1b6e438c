//! L6: what travels through other hands comes back as it was sent, or is refused, and counts once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use countersign::deferred::metadata::{APPROVAL_POLICY, BLOCKED};
use countersign::deferred::{Answer, Unapprovable};
use countersign::ledger::{
    Ask, AskRecord, AskState, Decided, Ledger, MemoryStore, Millis, Quorum, Surface,
};
use countersign::seal::{SealError, SealKeys};
use countersign::{Args, Decision};
use proptest::prelude::*;
use serde_json::{Value, json};

const SECRET: [u8; 32] = [7; 32];
const OLD: [u8; 32] = *b"0123456789abcdef0123456789abcdef";
const NOW: Millis = 1_800_000_000_000;

fn at(millis: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap())
}

fn keys() -> SealKeys {
    SealKeys::danger_with_guessable_secret("2026-11", SECRET).unwrap()
}

fn yes() -> Answer {
    Answer::Approve { args: None }
}

fn no() -> Answer {
    Answer::Deny { message: "no".into() }
}

/// A ledger whose clock stands until it is moved.
struct Place {
    ledger: Ledger,
    clock: Arc<AtomicI64>,
}

impl Place {
    fn new() -> Self {
        let clock = Arc::new(AtomicI64::new(NOW));
        let time = Arc::clone(&clock);
        let store = MemoryStore::with_clock(move || time.load(Ordering::Relaxed));
        Self { ledger: Ledger::new(store), clock }
    }

    async fn park(&self, ask: Ask) -> AskRecord {
        self.ledger.park(ask).await.unwrap()
    }

    async fn now(&self, ask: &AskRecord) -> AskRecord {
        self.ledger.get(ask.ask.id()).await.unwrap().unwrap()
    }

    async fn decide(&self, token: &str, answer: Answer) -> Result<Decided, SealError> {
        self.ledger.decide_sealed(&keys(), token, answer).await
    }

    /// Everything that was ever written.
    async fn written(&self) -> (Vec<AskRecord>, u64) {
        let entries = self.ledger.export(|_| ()).await.unwrap();
        (self.ledger.list(None, 1000).await.unwrap().records, entries)
    }
}

fn ask(call: &str) -> Ask {
    Ask::new("run-1", call, "delete_file")
        .with_args(Args::new().with("path", "MARKER.log"))
        .with_principal("mallory")
}

/// A token for Ann, good for a minute.
fn token(ask: &AskRecord) -> String {
    keys().seal_ask(ask, "ann", at(NOW + 60_000)).unwrap()
}

#[tokio::test]
async fn a_token_decides_as_the_person_it_names() {
    let place = Place::new();
    let ask = place.park(ask("root/c1")).await;
    let claims = keys().open_ask(&token(&ask), at(NOW)).unwrap();
    let told = [&claims.ask, &claims.run, &claims.call, &claims.tool, &claims.by];
    assert_eq!(told, [ask.ask.id(), "run-1", "root/c1", "delete_file", "ann"]);
    assert_eq!(
        (&claims.fingerprint, claims.principal.as_deref()),
        (&ask.fingerprint, Some("mallory"))
    );
    assert_eq!(place.decide(&token(&ask), yes()).await.unwrap(), Decided::Won { again: false });
    let decision = place.now(&ask).await.decision.unwrap();
    assert_eq!((decision.by, decision.answer), (vec!["ann".to_owned()], yes()));
}

/// A5: no surface approves a call that a layer has blocked, and none takes a result for a call that needs an approval.
#[tokio::test]
async fn a_token_decides_nothing_that_no_surface_would() {
    let place = Place::new();
    let blocked = Decision::ask("frozen").with_metadata(APPROVAL_POLICY, BLOCKED);
    let blocked = ask("root/c1").with_questions(blocked.questions().to_vec());
    let (blocked, open) = (place.park(blocked).await, place.park(ask("root/c2")).await);
    let result = Answer::Result { value: json!("deleted") };
    for (record, answer, why) in
        [(&blocked, yes(), Unapprovable::Blocked), (&open, result, Unapprovable::NeedsApproval)]
    {
        let decided = place.decide(&token(record), answer).await.unwrap();
        assert_eq!(decided, Decided::Unapprovable(why));
        assert_eq!(place.now(record).await, *record);
    }
    // The tool of a surface checks edited arguments, with a token as without.
    let surface = Surface::new(place.ledger.clone()).check(|_| Err("no such file".to_owned()));
    let token = keys().seal_ask_with_edits(&open, "ann", at(NOW + 60_000)).unwrap();
    let edited = Answer::Approve { args: Some(Args::new().with("path", "b.log")) };
    let decided = surface.decide_sealed(&keys(), &token, edited).await.unwrap();
    let problem = "no such file".to_owned();
    assert_eq!(decided, Decided::Unapprovable(Unapprovable::BadArgs { problem }));
    assert!(matches!(place.decide(&token, no()).await.unwrap(), Decided::Won { .. }));
}

#[tokio::test]
async fn a_token_that_is_used_twice_counts_once() {
    let place = Place::new();
    let ask = place.park(ask("root/c1")).await;
    let anns = token(&ask);
    let bobs = keys().seal_ask(&ask, "bob", at(NOW + 60_000)).unwrap();
    assert_eq!(place.decide(&anns, yes()).await.unwrap(), Decided::Won { again: false });
    let written = place.written().await;
    assert_eq!(place.decide(&anns, yes()).await.unwrap(), Decided::Won { again: true });
    for (token, answer) in [(&anns, no()), (&bobs, yes()), (&bobs, no())] {
        let Decided::Lost(first) = place.decide(token, answer).await.unwrap() else { panic!() };
        assert_eq!((first.by, first.decision, first.at), (vec!["ann".into()], yes(), NOW));
    }
    assert_eq!(place.written().await, written, "nothing more is written");

    let lease = Duration::from_secs(60);
    place.ledger.claim(ask.ask.id(), "w", lease).await.unwrap();
    place.ledger.settle(ask.ask.id(), 1, json!("deleted")).await.unwrap();
    assert!(matches!(place.decide(&anns, no()).await.unwrap(), Decided::Lost(_)));
    assert_eq!(place.now(&ask).await.state, AskState::Executed);
}

#[tokio::test]
async fn a_token_is_one_vote_of_a_quorum() {
    let place = Place::new();
    let quorum = Quorum { approvals: 2, not_the_requester: true };
    let ask = place.park(ask("root/c1").with_quorum(quorum)).await;
    let of = |who| keys().seal_ask(&ask, who, at(NOW + 60_000)).unwrap();
    for again in [false, true] {
        let voted = place.decide(&of("ann"), yes()).await.unwrap();
        assert_eq!(voted, Decided::Recorded { approvals: 1, needed: 2, again });
    }
    assert_eq!(place.decide(&of("mallory"), yes()).await.unwrap(), Decided::NotAllowed);
    assert_eq!(place.decide(&of("bob"), yes()).await.unwrap(), Decided::Won { again: false });
}

#[tokio::test]
async fn a_token_expires_by_the_stores_clock() {
    let place = Place::new();
    let ask = place.park(ask("root/c1").with_expires_in(Duration::from_secs(120))).await;
    let (token, written) = (token(&ask), place.written().await);
    for now in [NOW + 60_000, NOW + 60_001] {
        place.clock.store(now, Ordering::Relaxed);
        let error = place.decide(&token, yes()).await.unwrap_err();
        let SealError::Expired { expired_at, now: told } = error else { panic!("{error}") };
        assert_eq!((expired_at, told), (at(NOW + 60_000), at(now)));
        assert!(matches!(keys().open_ask(&token, at(now)), Err(SealError::Expired { .. })));
    }
    assert_eq!(place.written().await, written, "nothing has changed");
    place.clock.store(NOW + 59_999, Ordering::Relaxed);
    assert_eq!(place.decide(&token, yes()).await.unwrap(), Decided::Won { again: false });
}

#[tokio::test]
async fn the_deadline_of_the_ask_applies_to_its_token() {
    let place = Place::new();
    let ask = place.park(ask("root/c1").with_expires_in(Duration::from_secs(30))).await;
    place.clock.store(NOW + 30_000, Ordering::Relaxed);
    assert_eq!(place.decide(&token(&ask), yes()).await.unwrap(), Decided::Expired);
    assert_eq!(place.now(&ask).await.state, AskState::Expired);
}

#[tokio::test]
async fn a_token_is_for_one_call_with_its_questions() {
    let place = Place::new();
    let sealed = place.park(ask("root/c1")).await;
    let token = token(&sealed);

    // Another call of the same run waits as before.
    let other = place.park(ask("root/c2")).await;
    assert_eq!(place.decide(&token, yes()).await.unwrap(), Decided::Won { again: false });
    assert_eq!(place.now(&other).await, other);

    // The same call in a ledger that began anew, where it was asked about in another way.
    let changed = ask("root/c1").with_args(Args::new().with("path", "other.log"));
    for (ask, what) in [
        (changed, "arguments or questions"),
        (ask("root/c1").with_principal("eve"), "principal"),
        (Ask::new("run-1", "root/c1", "read_file").with_principal("mallory"), "tool"),
    ] {
        let place = Place::new();
        let found = place.park(ask).await;
        assert_eq!(found.ask.id(), sealed.ask.id(), "the same call");
        let written = place.written().await;
        let error = place.decide(&token, yes()).await.unwrap_err();
        assert!(
            matches!(&error, SealError::OtherAsk { what: told, .. } if *told == what),
            "{error}"
        );
        assert_eq!(place.written().await, written, "nothing has changed");
    }

    // Another run, or a ledger that knows nothing of it.
    let place = Place::new();
    let elsewhere = place.park(Ask::new("run-2", "root/c1", "delete_file")).await;
    assert_eq!(place.decide(&token, yes()).await.unwrap(), Decided::UnknownAsk);
    assert_eq!(place.now(&elsewhere).await, elsewhere);
}

/// Every text that differs from this one in a bit.
fn flipped(token: &str) -> Vec<String> {
    let bits = (0..token.len() * 8).filter_map(|bit| {
        let mut bytes = token.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        String::from_utf8(bytes).ok()
    });
    bits.collect()
}

#[tokio::test]
async fn every_bit_of_a_token_counts() {
    let place = Place::new();
    let ask = place.park(ask("root/c1")).await;
    let (token, written) = (token(&ask), place.written().await);
    let flipped = flipped(&token);
    assert!(flipped.len() > token.len() * 6, "the others are not even text");
    for changed in &flipped {
        let error = place.decide(changed, yes()).await.unwrap_err();
        assert!(
            matches!(
                error,
                SealError::Malformed { .. }
                    | SealError::Forged
                    | SealError::UnknownKey { .. }
                    | SealError::UnknownVersion { .. }
            ),
            "{changed}: {error}"
        );
    }
    assert_eq!(place.written().await, written, "nothing has changed");
    assert_eq!(place.decide(&token, yes()).await.unwrap(), Decided::Won { again: false });
}

#[tokio::test]
async fn an_invalid_token_is_refused_and_never_quoted() {
    let place = Place::new();
    let first = token(&place.park(ask("root/c1")).await);
    let second = token(&place.park(ask("root/c2")).await);
    let parts = |token: &str| token.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (a, b) = (parts(&first), parts(&second));
    let written = place.written().await;
    let mut bad: Vec<String> = (0..first.len()).map(|end| first[..end].to_owned()).collect();
    bad.extend([
        [&*a[0], &a[1], &b[2], &a[3]].join("."),
        [&*a[0], &a[1], &a[2], &b[3]].join("."),
        [&*a[0], &a[1], "", &a[3]].join("."),
        [&*a[0], &a[1], &a[2], ""].join("."),
        [&*a[0], &a[1], &a[3], &a[2]].join("."),
        [&*a[0], "", &a[2], &a[3]].join("."),
        [&*a[0], "\u{1b}[2J", &a[2], &a[3]].join("."),
        format!("{first}."),
        format!("{first}="),
        format!("{first}\n"),
        format!(" {first}"),
        format!("{first}A"),
        format!("{first}.{}", a[3]),
        format!("{first}{first}"),
        first.to_uppercase(),
        first.replacen("cs1", "cs", 1),
        first.replacen("cs1", "CS1", 1),
        String::new(),
        "...".into(),
        "cs1...".into(),
        "🦀".repeat(9),
        "A".repeat(1 << 20),
        format!("cs1.2026-11.{}.{}", "A".repeat(1 << 24), a[3]),
    ]);
    for token in bad {
        let error = place.decide(&token, yes()).await.unwrap_err();
        assert!(matches!(error, SealError::Malformed { .. } | SealError::Forged), "{error}");
        let said = format!("{error} {error:?}");
        assert!(!said.contains(&a[2]) && !said.contains('\u{1b}') && said.len() < 300, "{said}");
    }
    assert_eq!(place.written().await, written, "nothing has changed");
}

#[test]
fn a_token_of_a_later_form_is_named() {
    let error = keys().open_ask("cs2.anything.at all", at(NOW)).unwrap_err();
    assert!(matches!(&error, SealError::UnknownVersion { version } if version == "cs2"));
    assert!(error.to_string().contains("`cs2`"), "{error}");
}

#[test]
fn keys_rotate() {
    let open = |keys: &SealKeys, token: &str| keys.open::<Value>("p", token, at(NOW));
    let seal = |keys: &SealKeys| keys.seal("p", &json!(1), at(NOW + 1)).unwrap();
    let old = SealKeys::danger_with_guessable_secret("2025-11", OLD).unwrap();
    let both = keys().and_accept("2025-11", OLD).unwrap();
    let (early, late) = (seal(&old), seal(&both));

    assert_eq!(open(&both, &early).unwrap(), 1, "what the old key sealed is opened");
    assert_eq!(open(&keys(), &late).unwrap(), 1, "the new key seals");
    for (keys, token, name) in [(&old, &late, "2026-11"), (&keys(), &early, "2025-11")] {
        let error = open(keys, token).unwrap_err();
        assert!(matches!(&error, SealError::UnknownKey { key } if key == name), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let namesake = SealKeys::danger_with_guessable_secret("2026-11", OLD).unwrap();
    assert!(matches!(open(&namesake, &late), Err(SealError::Forged)), "another secret");
    let renamed = SealKeys::danger_with_guessable_secret("2025-11", SECRET).unwrap();
    let moved = late.replace("2026-11", "2025-11");
    assert!(matches!(open(&renamed, &moved), Err(SealError::Forged)), "the name is sealed too");
}

#[test]
fn weak_keys_are_refused() {
    let problem = |name: &str, secret: &[u8]| SealKeys::new(name, secret).unwrap_err().to_string();
    assert_eq!(
        problem("k", &SECRET[..31]),
        "key `k` cannot be used: its secret has 31 bytes, and at least 32 random ones are needed"
    );
    assert!(problem("k", b"").contains("has 0 bytes"));
    for name in ["", "a.b", "a b", "ü", "a\n", &"x".repeat(33)] {
        assert!(problem(name, &OLD).contains("letters, digits"), "{name}");
    }
    let twice = keys().and_accept("2026-11", OLD).unwrap_err().to_string();
    assert!(twice.contains("another one has its name"), "{twice}");
    for repeated in [vec![0; 32], vec![7; 32], vec![255; 100]] {
        assert!(problem("k", &repeated).contains("one byte, repeated"), "{repeated:?}");
    }
    SealKeys::new("x".repeat(32), [OLD, SECRET].concat()).unwrap();
}

#[tokio::test]
async fn a_token_approves_other_arguments_only_if_it_was_made_for_that() {
    // L6: "A token decides about the call as it was shown".
    let place = Place::new();
    let ask = place.park(Ask::new("r", "c", "pay").with_args(Args::new().with("eur", 5))).await;
    let edit = |eur: i64| Answer::Approve { args: Some(Args::new().with("eur", eur)) };
    let token = keys().seal_ask(&ask, "ann", at(NOW + 60_000)).unwrap();
    let error = place.decide(&token, edit(5_000)).await.unwrap_err();
    assert!(matches!(&error, SealError::NoEdits { ask: id } if id == ask.ask.id()), "{error}");
    assert_eq!(place.now(&ask).await, ask, "nothing has changed");
    let edits = keys().seal_ask_with_edits(&ask, "ann", at(NOW + 60_000)).unwrap();
    assert_eq!(place.decide(&edits, edit(6)).await.unwrap(), Decided::Won { again: false });

    let ask = place.park(Ask::new("r", "d", "pay").with_args(Args::new().with("eur", 5))).await;
    let token = keys().seal_ask(&ask, "ann", at(NOW + 60_000)).unwrap();
    let same = place.decide(&token, edit(5)).await.unwrap();
    assert_eq!(same, Decided::Won { again: false }, "the same arguments are no others");
}

#[tokio::test]
async fn a_token_is_for_its_audience() {
    let place = Place::new();
    let ask = place.park(Ask::new("r", "c", "pay")).await;
    let token = keys().audience("staging").seal_ask(&ask, "ann", at(NOW + 60_000)).unwrap();
    for other in [keys(), keys().audience("production"), keys().audience("")] {
        let error = place.ledger.decide_sealed(&other, &token, yes()).await.unwrap_err();
        assert!(matches!(error, SealError::Forged), "{error}");
    }
    assert_eq!(place.now(&ask).await, ask, "nothing has changed");
    let made = place.ledger.decide_sealed(&keys().audience("staging"), &token, yes()).await;
    assert_eq!(made.unwrap(), Decided::Won { again: false });
}

#[test]
fn reserved_purposes_are_refused() {
    for purpose in ["countersign", "countersign ask", "countersign ai-sdk chat 1"] {
        let error = keys().seal(purpose, &json!(1), at(NOW + 1)).unwrap_err();
        assert!(error.to_string().contains("are the library's"), "{error}");
    }
}

#[test]
fn keys_do_not_show_their_secrets() {
    let secret = *b"hunter2 hunter2 hunter2 hunter2!";
    let keys = SealKeys::new("a", secret).unwrap().and_accept("b", OLD).unwrap();
    assert_eq!(format!("{keys:?}"), r#"["a", "b"]"#);
    let short = SealKeys::new("a", "hunter2").unwrap_err();
    assert!(!format!("{short} {short:?}").contains("hunter2"));
}

#[test]
fn a_token_for_one_purpose_is_refused_for_another() {
    let keys = keys();
    let token = keys.seal("log in", &json!({"user": "ann"}), at(NOW + 1)).unwrap();
    let open = |purpose: &str| keys.open::<Value>(purpose, &token, at(NOW));
    assert_eq!(open("log in").unwrap(), json!({"user": "ann"}));
    for other in ["", "log", "log in ", "log out", "countersign ask"] {
        assert!(matches!(open(other), Err(SealError::Forged)), "{other}");
    }
    assert!(matches!(keys.open_ask(&token, at(NOW)), Err(SealError::Forged)));
}

#[test]
fn claims_of_another_type_name_the_field() {
    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code, reason = "only read")]
    struct Claims {
        user: u32,
    }
    let token = keys().seal("p", &json!({"user": "MARKER"}), at(NOW + 1)).unwrap();
    let error = keys().open::<Claims>("p", &token, at(NOW)).unwrap_err();
    assert!(matches!(error, SealError::OtherClaims { .. }));
    assert!(error.to_string().ends_with("`user` does not fit"), "{error}");
}

#[test]
fn claims_that_are_too_large_are_refused_when_they_are_sealed() {
    let seal = |bytes: usize| keys().seal("p", &"x".repeat(bytes), at(NOW + 1));
    let error = seal(13_000).unwrap_err().to_string();
    assert!(error.contains("at most 16384 are sealed"), "{error}");
    let largest = seal(12_000).unwrap();
    assert_eq!(keys().open::<String>("p", &largest, at(NOW)).unwrap().len(), 12_000);
}

#[test]
fn extreme_times_are_accepted() {
    let seal = |at| keys().seal("p", &json!(1), at).unwrap();
    let open = |token: &str, at| keys().open::<Value>("p", token, at);
    let long_ago = UNIX_EPOCH - Duration::from_secs(1);
    let never = UNIX_EPOCH + Duration::from_millis(u64::try_from(i64::MAX).unwrap());
    assert!(open(&seal(long_ago), long_ago).is_err());
    assert!(open(&seal(never), at(NOW)).is_ok());
    assert!(matches!(open(&seal(never), never), Err(SealError::Expired { .. })));
}

/// L7: the form of a token never changes without another number.
#[tokio::test]
async fn a_token_is_the_same_in_every_build() {
    let place = Place::new();
    let ask = place.park(ask("root/c1")).await;
    // Also made in Python, by what the page of the module says.
    assert_eq!(
        token(&ask),
        "cs1.2026-11.eyJjbGFpbXMiOnsiYXNrIjoiN2RjYWVhY2JjMWM1YmQ5ZjU4Yzc1ZDlmYTJjMTQwNzAiLCJieSI6ImFubiIsImNhbGwiOiJyb290L2MxIiwiZmluZ2VycHJpbnQiOiIzNzliYTVjNmFhNmIzZDlkYTU2ODRiZTU3NmQxNDE0YmIxN2Q0NTE3ZGZjOTg2ZmVlNGZjNmFjNThhNGE2N2Q5IiwicHJpbmNpcGFsIjoibWFsbG9yeSIsInJ1biI6InJ1bi0xIiwidG9vbCI6ImRlbGV0ZV9maWxlIn0sImV4cGlyZXNfYXQiOjE4MDAwMDAwNjAwMDB9.c2ebASV6y0-gsGSuf-TdcwR0uDe9ucL61ihDw2VSFas"
    );
    let claims = json!({"z": [1, -0.5, u64::MAX, null], "a": "é\n"});
    assert_eq!(
        keys().seal("golden", &claims, at(NOW)).unwrap(),
        "cs1.2026-11.eyJjbGFpbXMiOnsiYSI6IsOpXG4iLCJ6IjpbMSwtMC41LDE4NDQ2NzQ0MDczNzA5NTUxNjE1LG51bGxdfSwiZXhwaXJlc19hdCI6MTgwMDAwMDAwMDAwMH0.c37ONjbP5TTxwYw3TtSiOfo1SCy6xpyvegHx5i7Umug"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // Any claims come back under their purpose and key, and under nothing else, whatever bit is flipped.
    #[test]
    fn claims_survive_a_round_trip_unchanged(
        purpose in ".{0,20}", other in ".{0,20}", text in ".*", number in any::<i64>(), list in prop::collection::vec(any::<u64>(), 0..5),
        secret in any::<[u8; 32]>(), lives in 1..1_000_000_i64, bit in any::<prop::sample::Index>(),
    ) {
        let claims = json!({"text": text, "number": number, "list": list});
        let keys = SealKeys::danger_with_guessable_secret("k", secret).unwrap();
        let token = keys.seal(&purpose, &claims, at(NOW + lives)).unwrap();
        prop_assert!(token.bytes().all(|it| it.is_ascii_alphanumeric() || b"._-".contains(&it)), "it fits into a URL");
        prop_assert_eq!(keys.open::<Value>(&purpose, &token, at(NOW)).unwrap(), claims);
        prop_assert!(keys.open::<Value>(&purpose, &token, at(NOW + lives)).is_err());
        prop_assert!(purpose == other || keys.open::<Value>(&other, &token, at(NOW)).is_err());
        let mut changed = token.into_bytes();
        let at_bit = bit.index(changed.len() * 8);
        changed[at_bit / 8] ^= 1 << (at_bit % 8);
        if let Ok(changed) = String::from_utf8(changed) {
            prop_assert!(keys.open::<Value>(&purpose, &changed, at(NOW)).is_err());
        }
    }

    // No text at all is a token, and none makes it panic.
    #[test]
    fn garbage_is_refused(text in ".*", parts in prop::collection::vec("[A-Za-z0-9_=.-]{0,60}", 0..6)) {
        prop_assert!(keys().open::<Value>("p", &text, at(NOW)).is_err());
        let like_one = format!("cs1.2026-11.{}", parts.join("."));
        prop_assert!(keys().open::<Value>("p", &like_one, at(NOW)).is_err());
    }
}
