//! The versions of the AI SDK that clients use.

use std::fmt;
use std::str::FromStr;

/// The oldest version of the `ai` package that clients use.
///
/// Requests do not carry the version, so a server has to be configured with it. The default is 6.0.0, the first one
/// with approvals. The chunks for a version are valid for every later one; newer versions are sent more kinds of
/// chunks.
///
/// ```
/// use countersign_ai_sdk::ClientVersion;
///
/// assert_eq!("v7".parse(), Ok(ClientVersion::V7));
/// assert_eq!("7.0.82".parse(), Ok(ClientVersion::new(7, 0, 82)));
/// assert!(ClientVersion::V7 > ClientVersion::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

impl ClientVersion {
    /// Version 6.0.0, the first with approvals.
    pub const V6: Self = Self::new(6, 0, 0);
    /// Version 7.0.0, the first of its major.
    pub const V7: Self = Self::new(7, 0, 0);

    /// The version with these numbers. Versions before 6.0.0 are served like 6.0.0.
    ///
    /// ```
    /// use countersign_ai_sdk::ClientVersion;
    /// assert!(ClientVersion::new(7, 0, 70) > ClientVersion::V7);
    /// assert_eq!(ClientVersion::new(7, 0, 70).to_string(), "7.0.70");
    /// assert!("5.0.0".parse::<ClientVersion>().is_err());
    /// ```
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Returns `true` if clients accept `reset-step`, which drops the parts of the latest step.
    pub(super) fn resets_steps(self) -> bool {
        self >= Self::new(7, 0, 70)
    }

    /// Returns `true` if clients accept a `reason` in `tool-approval-request`.
    pub(super) fn reads_reasons(self) -> bool {
        self >= Self::new(7, 0, 82)
    }
}

impl Default for ClientVersion {
    fn default() -> Self {
        Self::V6
    }
}

/// The error for a text that is not a [`ClientVersion`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no version of the `ai` package: say `v6`, `v7`, or one like `7.0.82`, from 6.0.0 on"
)]
pub struct NoVersion(String);

impl FromStr for ClientVersion {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let wrong = || NoVersion(text.escape_debug().to_string());
        let numbers: Result<Vec<u32>, _> =
            text.strip_prefix('v').unwrap_or(text).split('.').map(str::parse).collect();
        let version = match *numbers.map_err(|_| wrong())?.as_slice() {
            [major] => Self::new(major, 0, 0),
            [major, minor, patch] => Self::new(major, minor, patch),
            _ => return Err(wrong()),
        };
        if version < Self::V6 { Err(wrong()) } else { Ok(version) }
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
