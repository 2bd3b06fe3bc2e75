//! scratch
use rbench_core::*;
use rbench_testfs::*;
use std::fs;
use std::os::unix::fs::*;
use std::path::Path;
use std::time::Instant;
fn run(
    p: &Path,
    threads: usize,
    n: usize,
    f: impl Fn(usize, usize) -> () + Sync,
) -> (f64, Latency) {
    let t = Instant::now();
    let l = std::thread::scope(|s| {
        let hs: Vec<_> = (0..threads)
            .map(|th| {
                let f = &f;
                s.spawn(move || {
                    let mut l = Latency::new();
                    for i in 0..n {
                        let t = Instant::now();
                        f(th, i);
                        l.record(Nanos(t.elapsed().as_nanos() as u64));
                    }
                    l
                })
            })
            .collect();
        let mut a = Latency::new();
        for h in hs {
            a.merge(&h.join().unwrap());
        }
        a
    });
    let _ = p;
    ((threads * n) as f64 / t.elapsed().as_secs_f64(), l)
}
fn show(what: &str, (r, l): (f64, Latency)) {
    println!(
        "{what}: {r:.0}/s mean {} p50 {} p99 {} max {}",
        rbench_core::units::human_nanos(l.mean_ns()),
        l.quantile(0.5),
        l.quantile(0.99),
        l.max()
    );
}
fn main() {
    let d = tempfile::tempdir().unwrap();
    let cfg = if let Some(b) = std::env::args().nth(1) {
        Config::passthrough(b)
    } else {
        Config::memory(Bytes(1 << 30))
    };
    let m = mount(cfg, d.path()).unwrap();
    let p = d.path();
    for th in 0..4 {
        fs::create_dir(p.join(format!("t{th}"))).unwrap();
    }
    let big = fs::File::create(p.join("big")).unwrap();
    big.write_all_at(&vec![1u8; 64 << 20], 0).unwrap();
    for th in [1, 4] {
        let before = m.stats().snapshot();
        show(
            &format!("{th} threads create+close+unlink"),
            run(p, th, 20000 / th, |t, i| {
                let f = p.join(format!("t{t}/f{i}"));
                fs::File::create(&f).unwrap();
                fs::remove_file(&f).unwrap();
            }),
        );
        let f = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(p.join("big"))
            .unwrap();
        show(
            &format!("{th} threads 4k direct read"),
            run(p, th, 40000 / th, |t, i| {
                let mut b = [0u8; 4096];
                f.read_at(&mut b, ((i * 7919 + t * 13) % 16384) as u64 * 4096)
                    .unwrap();
            }),
        );
        show(
            &format!("{th} threads 1M direct read"),
            run(p, th, 2000 / th, |_t, i| {
                let mut b = vec![0u8; 1 << 20];
                f.read_at(&mut b, ((i * 7919) % 60) as u64 * (1 << 20))
                    .unwrap();
            }),
        );
        show(
            &format!("{th} threads fstat"),
            run(p, th, 40000 / th, |t, _| {
                nix::sys::stat::stat(p.join(format!("t{t}/nofile")).as_path()).ok();
            }),
        );
        let w = fs::OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(p.join("big"))
            .unwrap();
        show(
            &format!("{th} threads 4k direct write"),
            run(p, th, 40000 / th, |t, i| {
                let b = [0u8; 4096];
                w.write_at(&b, ((i * 7919 + t * 13) % 16384) as u64 * 4096)
                    .unwrap();
            }),
        );
        let s = m.stats().snapshot();
        for k in [
            Kind::Create,
            Kind::Unlink,
            Kind::Read,
            Kind::Write,
            Kind::Lookup,
            Kind::Flush,
            Kind::Release,
        ] {
            let l = &s.kind(k).unwrap().latency;
            println!(
                "   own {k}: n {} mean {} p50 {} p99 {}",
                l.count(),
                rbench_core::units::human_nanos(l.mean_ns()),
                l.quantile(0.5),
                l.quantile(0.99)
            );
        }
        let _ = before;
    }
    m.unmount().unwrap();
}
