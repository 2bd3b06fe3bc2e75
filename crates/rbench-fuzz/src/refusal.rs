//! The form of refusals: one sentence on a line that a terminal shows unchanged, or several if all
//! mistakes are reported at once.

/// Checks that `text` can be printed: it is not empty and contains no control characters.
pub fn is_plain(text: &str) {
    assert!(!text.trim().is_empty(), "a refusal says why");
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "a refusal steers the terminal: {text:?}"
    );
}

/// Checks the reason, if it is refused, and returns the value if it is not.
pub fn of<T>(result: Result<T, impl ToString>) -> Option<T> {
    result.map_err(|why| is_plain(&why.to_string())).ok()
}

/// Checks the refusal of a command line: complaints, an optional tip, a pointer to the help, and
/// the exit code of misuse. Help is exempt.
pub fn of_line(stop: &rbench_cli::Stop) {
    if stop.code == 0 {
        return;
    }
    assert_eq!(stop.code, 2, "{stop:?}");
    let mut lines = stop.text.lines().filter(|line| !line.is_empty());
    let complaint = lines.next().expect("something is said");
    assert!(complaint.starts_with("error: "), "{stop:?}");
    is_plain(complaint);
    for line in lines {
        // All mistakes of a job file are reported at once.
        let known = ["error: ", "  tip: ", "For more information, try 'rbench "];
        assert!(known.iter().any(|k| line.starts_with(k)), "{stop:?}");
        is_plain(line);
    }
}
