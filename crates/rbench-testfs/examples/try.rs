//! scratch
use rbench_core::*;
use rbench_testfs::*;
use std::fs;
fn main() {
    let d = tempfile::tempdir().unwrap();
    let m = mount(Config::memory(Bytes(1 << 30)).uncached(), d.path()).unwrap();
    let p = d.path();
    println!(
        "{}",
        fs::read_to_string("/proc/mounts")
            .unwrap()
            .lines()
            .last()
            .unwrap()
    );
    let mut last = m.stats().snapshot();
    let mut show = |what: &str| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let s = m.stats().snapshot();
        println!(
            "{what}: {:?}",
            s.since(&last)
                .iter()
                .map(|(k, c)| (k.name(), c.requests, c.errors))
                .collect::<Vec<_>>()
        );
        last = s;
    };
    for i in 0..10 {
        fs::write(p.join(format!("f{i}")), "hello").unwrap();
    }
    show("10 create+write");
    for i in 0..10 {
        fs::symlink_metadata(p.join(format!("f{i}"))).unwrap();
    }
    show("10 stat");
    for i in 0..10 {
        fs::read(p.join(format!("f{i}"))).unwrap();
    }
    show("10 read");
    for i in 0..10 {
        fs::create_dir(p.join(format!("d{i}"))).unwrap();
    }
    show("10 mkdir");
    for i in 0..10 {
        fs::read_dir(p.join(format!("d{i}"))).unwrap().count();
    }
    show("10 list");
    for i in 0..10 {
        fs::rename(p.join(format!("f{i}")), p.join(format!("g{i}"))).unwrap();
    }
    show("10 rename");
    for i in 0..10 {
        fs::remove_file(p.join(format!("g{i}"))).unwrap();
    }
    show("10 unlink");
    for i in 0..10 {
        fs::remove_dir(p.join(format!("d{i}"))).unwrap();
    }
    show("10 rmdir");
    m.unmount().unwrap();
}
