//! Sizes and offsets in per cent.

use super::*;

#[test]
fn files_have_the_name_of_the_section_and_logs_without_a_prefix_that_of_the_job() {
    let logs = |s: &mut Settings| {
        (s.report.logs.bandwidth, s.report.logs.iops) = (Some(String::new()), Some("x".to_owned()));
    };
    let job = Job {
        name: "shown".to_owned(),
        ..job("section", logs)
    };
    let (plan, _) = jobs(vec![job]).expect("a job");
    let plan = &plan.rounds[0][0];
    assert_eq!(plan.name, "shown");
    let file = crate::pattern::file_path(plan, 0, 0);
    assert_eq!(file, std::path::Path::new("section.0.0"));
    let logs = &report(plan).logs;
    assert_eq!(logs.bandwidth.as_deref(), Some("shown"));
    assert_eq!(logs.iops.as_deref(), Some("x"));
}

#[test]
fn sizes_in_per_cent_are_those_of_filesize_or_of_the_files_as_they_are() {
    let plan = single(|s| s.size = Some(Extent::Percent(50)));
    let shares = plan.files.shares;
    assert_eq!((plan.files.size, shares.size), ((0, 0), Some(50)));
    let plan = single(|s| {
        s.size = Some(Extent::Percent(50));
        s.filesize = Some((65_536, 65_536));
    });
    let shares = plan.files.shares;
    assert_eq!((plan.files.size, shares.size), ((32_768, 32_768), None));
    refused! {
        "size=5% of filesize (65536) is less than one block (bs), 4096 bytes":
            size = Some(Extent::Percent(5)), filesize = Some((65_536, 65_536));
    }
    // Like in fio, 0 per cent has no effect.
    let plan = single(|s| {
        (s.size, s.offset) = (Some(Extent::Percent(0)), Some(Extent::Percent(0)));
    });
    assert_eq!(plan.files.size, (0, 0));
    assert_eq!(plan.files.shares, Shares::default());
}

#[test]
fn beginnings_in_per_cent_are_aligned_to_blocks_or_to_offset_align() {
    let plan = single(|s| {
        s.offset = Some(Extent::Percent(25));
        s.offset_increment = Some(Extent::Percent(10));
    });
    let shares = plan.files.shares;
    assert_eq!((shares.offset, shares.increment), (Some(25), Some(10)));
    assert_eq!((plan.files.offset, shares.align), (0, 4096));
    let aligned = |align: u64| {
        single(move |s| {
            (s.offset, s.offset_align) = (Some(Extent::Percent(25)), Some(align));
        })
    };
    assert_eq!(aligned(16_384).files.shares.align, 16_384);
    assert_eq!(aligned(0).files.shares.align, 4096);
    // Numbers of bytes are not aligned.
    let plan = single(|s| {
        (s.offset, s.offset_align) = (Some(Extent::Bytes(5120)), Some(16_384));
    });
    assert_eq!((plan.files.offset, plan.files.start(0)), (5120, 5120));
    assert!(!plan.files.begins_by_length());
    refused! {
        "offset_align is 100":
            offset = Some(Extent::Percent(25)), offset_align = Some(100), plan.direct = true;
    }
}

#[test]
fn io_size_in_per_cent_is_known_before_or_by_the_files() {
    let plan = single(|s| s.io_size = Some(Extent::Percent(50)));
    assert_eq!(plan.pace.io_size, Some(MIB / 2));
    assert_eq!(plan.pace.io_share, None);
    let plan = single(|s| (s.size, s.io_size) = (None, Some(Extent::Percent(50))));
    assert_eq!((plan.pace.io_size, plan.pace.io_share), (None, Some(50)));
}

#[test]
fn filesize_holds_what_lies_before_the_offset_too() {
    let plan = single(|s| {
        s.size = None;
        s.filesize = Some((65_536, 65_536));
        s.offset = Some(Extent::Bytes(16_384));
    });
    assert_eq!(plan.files.part(0, 65_536, 0), (16_384, 49_152));
    refused! {
        "offset (65536) is not within the 65536 bytes of filesize":
            filesize = Some((65_536, 65_536)), offset = Some(Extent::Bytes(65_536));
    }
}

#[test]
fn what_is_appended_is_written_and_so_many_bytes() {
    let append = |change: fn(&mut Settings)| {
        move |s: &mut Settings| {
            (s.file_append, s.rw) = (Some(true), Some(WRITE));
            change(s);
        }
    };
    let plan = single(append(|s| s.offset = Some(Extent::Bytes(4096))));
    assert!(plan.files.shares.append);
    assert_eq!(plan.files.offset, 0, "as with fio");
    each! { check_refused:
        append(|s| s.rw = Some(READ)) => "only writes";
        append(|s| s.size = None) => "file_append needs size";
        append(|s| s.overwrite = Some(true)) => "cannot be combined with create_only";
        append(|s| s.ioengine = Some("mmap".into())) => "ioengine=mmap";
    }
}
