//! Parser of the kernel's mount table (proc(5), `mountinfo`). The caller decides
//! which process's table it reads, and what it searches in it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number, unique while it exists.
    pub id: u64,
    /// The number of the mount that it is mounted on.
    pub parent: u64,
    /// Major and minor number of the file system's device.
    pub device: (u64, u64),
    /// Directory at which it is mounted.
    pub mount_point: PathBuf,
    /// `ro` or `rw` as in effect, then the options of the mount, then those of the
    /// file system.
    pub options: Vec<String>,
    /// The type of the file system: `ext4`, `fuse.juicefs` …
    pub fs_type: String,
    /// Its source: a device, `host:/export`, a name …
    pub source: String,
}

/// The mounts of a table, in its order. Of several at one mount point, the last is on
/// top. Names may have any encoding; malformed lines are skipped.
pub fn mounts(table: &[u8]) -> impl Iterator<Item = Mount> {
    table.split(|byte| *byte == b'\n').filter_map(parse)
}

/// Reads `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw`. The fields
/// before the dash are number, parent number, device, root, mount point, options, and
/// optional fields. Type, source and options of the file system follow.
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    let device = device(std::str::from_utf8(fields.next()?).ok()?)?;
    let mount_point = unescape(fields.nth(1)?);
    let mount_options = fields.next()?;
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let (fs_type, source) = (text(fields.next()?), text(fields.next()?));
    Some(Mount {
        id,
        parent,
        device,
        mount_point: OsString::from_vec(mount_point).into(),
        options: options(mount_options, fields.next().unwrap_or_default()),
        fs_type,
        source,
    })
}

/// Reads `259:3`: major and minor number of a device.
pub fn device(text: &str) -> Option<(u64, u64)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Joins both lists, without duplicates. Read-only in either means read-only.
fn options(mount: &[u8], fs: &[u8]) -> Vec<String> {
    let all = || {
        [mount, fs]
            .into_iter()
            .flat_map(|l| l.split(|b| *b == b','))
    };
    let read_only = all().any(|option| option == b"ro");
    let mut merged = vec![if read_only { "ro" } else { "rw" }.to_owned()];
    for option in all().filter(|option| !matches!(*option, b"" | b"ro" | b"rw")) {
        let option = text(option);
        if !merged.contains(&option) {
            merged.push(option);
        }
    }
    merged
}

/// Undoes the escapes `\ooo` (three octal digits) of blanks and backslashes.
pub fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match rest {
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ] => ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), after),
            _ => (first, after),
        };
        plain.push(byte);
        rest = after;
    }
    plain
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_field_is_read_and_escapes_are_undone() {
        let line = b"26 22 0:42 /sub /mnt/with\\040blank\\134\\011\\012\xff ro,noatime master:2 \
                     shared:7 - nfs4 host:/an\\040export rw,vers=4.2,noatime";
        let expect = Mount {
            id: 26,
            parent: 22,
            device: (0, 42),
            mount_point: OsString::from_vec(b"/mnt/with blank\\\t\n\xff".to_vec()).into(),
            options: ["ro", "noatime", "vers=4.2"].map(str::to_owned).to_vec(),
            fs_type: "nfs4".to_owned(),
            source: "host:/an export".to_owned(),
        };
        assert_eq!(parse(line), Some(expect));
        assert_eq!(unescape(b"\\04"), b"\\04");
        assert_eq!(unescape(b"\\400\\377"), b"\\400\xff");
    }

    #[test]
    fn what_is_read_only_in_either_list_is_read_only() {
        let check = |mount: &str, fs: &str, expect: &str| {
            let options = options(mount.as_bytes(), fs.as_bytes());
            assert_eq!(options.join(","), expect);
        };
        check("rw,noatime", "ro,noatime", "ro,noatime");
        check("ro", "rw,a", "ro,a");
        check("rw", "", "rw");
    }

    #[test]
    fn lines_that_cannot_be_read_are_passed_over() {
        let table = b"22 1 254:0 / / rw - ext4 /dev/vda rw,discard\n\
                      broken line\n\
                      29 x 0:44\n\
                      30 22 0:45 / /no/dash rw ext4 /dev/vda rw\n\
                      27 22 0:43 / /mnt/a-b rw - tmpfs - \n";
        let points: Vec<PathBuf> = mounts(table).map(|m| m.mount_point).collect();
        assert_eq!(points, [Path::new("/"), Path::new("/mnt/a-b")]);
        let last = mounts(table).last().expect("two mounts");
        assert_eq!(
            (last.source.as_str(), last.options.join(",")),
            ("-", "rw".to_owned())
        );
    }
}
