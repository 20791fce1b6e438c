//! The forms that are open in a client of an earlier revision.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::downstream::lock;

/// The end of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormState {
    Open,
    /// It was closed without an answer.
    Closed,
    /// It was answered or withdrawn, or the client cannot show it.
    Over,
    /// It was answered, and the answer could not be recorded.
    Lost(String),
}

/// The forms that are open in one client, by their asks: requests that wait for one ask share its form.
#[derive(Default)]
pub(crate) struct OpenForms(Mutex<HashMap<String, watch::Receiver<FormState>>>);

impl OpenForms {
    /// The form of this ask. It is to be sent where it was not open, and is open until what is to send it is dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        ask: &str,
    ) -> (watch::Receiver<FormState>, Option<OpenForm>) {
        let mut open = lock(&self.0);
        if let Some(state) = open.get(ask) {
            return (state.clone(), None);
        }
        let (sender, state) = watch::channel(FormState::Open);
        open.insert(ask.to_owned(), state.clone());
        let (forms, ask, end) = (Arc::clone(self), ask.to_owned(), FormState::Over);
        (state, Some(OpenForm { forms, ask, state: sender, end }))
    }
}

/// A form that is open, until it is dropped.
pub(crate) struct OpenForm {
    forms: Arc<OpenForms>,
    ask: String,
    state: watch::Sender<FormState>,
    /// The end that is told when it is dropped.
    pub(crate) end: FormState,
}

impl Drop for OpenForm {
    fn drop(&mut self) {
        lock(&self.forms.0).remove(&self.ask);
        self.state.send_replace(self.end.clone());
    }
}
