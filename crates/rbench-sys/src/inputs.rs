//! Inputs that are read from start to end and are not targets: a file, a pipe, a socket,
//! standard input.

use std::fs::File;
use std::io::{self, Read, stdin};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The name for standard input.
pub const STDIN: &str = "-";

/// True if `path` means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == STDIN)
}

/// An open input.
pub struct Input {
    /// Its reader.
    pub reader: Box<dyn Read + Send>,
    /// True if it can be opened again with the same content.
    pub is_file: bool,
}

/// Opens the input at `path`, relative to the working directory. A pipe blocks until a
/// writer opens it.
///
/// # Errors
/// The system's error.
pub fn open(path: &Path) -> io::Result<Input> {
    if is_stdin(path) {
        return Ok(Input {
            reader: Box::new(stdin()),
            is_file: false,
        });
    }
    let kind = path.metadata()?.file_type();
    let reader: Box<dyn Read + Send> = match kind.is_socket() {
        true => Box::new(UnixStream::connect(path)?),
        false => Box::new(File::open(path)?),
    };
    Ok(Input {
        reader,
        is_file: kind.is_file(),
    })
}

/// True if the input at `path` can be read repeatedly.
///
/// # Errors
/// The system's error.
pub fn is_file(path: &Path) -> io::Result<bool> {
    match is_stdin(path) {
        true => Ok(false),
        false => path.metadata().map(|found| found.is_file()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;

    #[test]
    fn files_pipes_and_sockets_are_read_to_their_end() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let read = |path: &Path| {
            let mut input = open(path).expect("opens");
            let mut text = String::new();
            input.reader.read_to_string(&mut text).expect("reads");
            (text, input.is_file)
        };
        let file = dir.path().join("file");
        std::fs::write(&file, "of a file").expect("written");
        assert_eq!(read(&file), ("of a file".to_owned(), true));

        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let other = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(other, "of a pipe"));
        assert_eq!(read(&pipe), ("of a pipe".to_owned(), false));
        writer.join().expect("ends").expect("written");

        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let writer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("connects");
            stream.write_all(b"of a socket")
        });
        assert_eq!(read(&socket), ("of a socket".to_owned(), false));
        writer.join().expect("ends").expect("written");
        assert!(open(&dir.path().join("nothing")).is_err());
    }
}
