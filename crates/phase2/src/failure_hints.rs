//! The failure map: symptom → where to look and what to do.

/// The hint for a failed task or smoke row, judged by the task's id and the words of the failure.
pub fn hint(task: &str, text: &str) -> Option<String> {
    todo!()
}
