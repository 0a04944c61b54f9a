//! Policy and exit give again or never.

use super::declared::RestartPolicy;
use super::record::Exit;

/// Whether a workload under `policy` runs again after `exit`.
///
/// An interruption runs again under every policy. A container that vanished is no clean end, so it
/// is made again unless the policy is `never`.
pub fn runs_again(policy: RestartPolicy, exit: &Exit) -> bool {
    if exit.interrupted {
        return true;
    }
    match policy {
        RestartPolicy::Always => true,
        // With whatever code it took the signal: it had failed before.
        RestartPolicy::OnFailure => exit.unhealthy || exit.code != Some(0),
        RestartPolicy::Never => false,
    }
}

/// What an exit is called in `errorMessage` and `stateInfo`; `None` for a clean one.
pub fn crash_text(exit: &Exit) -> Option<String> {
    let Some(code) = exit.code else {
        let vanished = || "the container vanished".to_owned();
        return Some(Some(exit.error.clone()).filter(|e| !e.is_empty()).unwrap_or_else(vanished));
    };
    if code == 0 && !exit.oom_killed {
        return None;
    }
    let mut text = format!("exitCode={code} oomKilled={}", exit.oom_killed);
    if !exit.error.is_empty() {
        text.push_str(" error=");
        text.push_str(&exit.error);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::ContainerId;

    fn exit(code: Option<i32>, interrupted: bool) -> Exit {
        Exit {
            container: ContainerId::new("c"),
            started_at_ns: 1,
            code,
            oom_killed: false,
            error: String::new(),
            interrupted,
            unhealthy: false,
        }
    }

    #[test]
    fn policy_by_exit() {
        use RestartPolicy::{Always, Never, OnFailure};
        let table = [
            (Always, Some(0), true),
            (Always, Some(1), true),
            (Always, None, true),
            (OnFailure, Some(0), false),
            (OnFailure, Some(1), true),
            (OnFailure, Some(137), true),
            (OnFailure, None, true),
            (Never, Some(0), false),
            (Never, Some(1), false),
            (Never, None, false),
        ];
        for (policy, code, again) in table {
            assert_eq!(runs_again(policy, &exit(code, false)), again, "{policy:?} {code:?}");
            assert!(runs_again(policy, &exit(code, true)), "interrupted {policy:?} {code:?}");
        }
    }

    #[test]
    fn an_unhealthy_end_is_a_failure_with_any_code() {
        let unhealthy = Exit { unhealthy: true, ..exit(Some(0), false) };
        for (policy, again) in [
            (RestartPolicy::Always, true),
            (RestartPolicy::OnFailure, true),
            (RestartPolicy::Never, false),
        ] {
            assert_eq!(runs_again(policy, &unhealthy), again, "{policy:?}");
        }
    }

    #[test]
    fn clean_exits_have_no_text() {
        assert_eq!(crash_text(&exit(Some(0), false)), None);
        assert_eq!(crash_text(&exit(Some(3), false)).unwrap(), "exitCode=3 oomKilled=false");
    }
}
