//! What a refusal looks like: a sentence on one line that a terminal shows as
//! it is, or several, where all that is wrong is told at once.

/// Asserts that `text` can be printed: something is said, and nothing in it
/// steers the terminal.
pub fn is_plain(text: &str) {
    assert!(!text.trim().is_empty(), "a refusal says why");
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "a refusal steers the terminal: {text:?}"
    );
}

/// Asserts that a command line was refused well: complaints, perhaps a tip,
/// where to find help, and the exit code of misuse. Help is exempt.
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
        // Of a job file, all that is wrong is told at once.
        let known = ["error: ", "  tip: ", "For more information, try 'rbench "];
        assert!(known.iter().any(|k| line.starts_with(k)), "{stop:?}");
        is_plain(line);
    }
}
