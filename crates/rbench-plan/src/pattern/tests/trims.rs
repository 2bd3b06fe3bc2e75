//! Trims, alone and before writes, as fio 3.33 logged them with the engine falloc. Its
//! documentation says: "blocks will be trimmed first, then the same blocks will be
//! written to".

use super::*;

fn trims(writes: bool, random: bool, [trim, write]: [u64; 2], size: u64) -> JobPlan {
    let mut plan = job(false, writes, random, write * KIB, size * KIB);
    plan.pattern.directions.trim = true;
    plan.pattern.sizes.trim = BlockSizes::Fixed(trim * KIB);
    plan
}

/// Formats steps as `T0+16 W0+8 …`, in KiB.
fn text(steps: &[Step]) -> String {
    let one = |step: &Step| {
        let letter = match step.direction {
            Direction::Read => 'R',
            Direction::Write => 'W',
            Direction::Trim => 'T',
        };
        format!("{letter}{}+{}", step.offset / KIB, step.length / KIB)
    };
    let all: Vec<String> = steps.iter().map(one).collect();
    all.join(" ")
}

#[test]
fn each_block_is_trimmed_and_then_written() {
    let check = |sizes, size, expect: &str| {
        assert_eq!(text(&steps(&trims(true, false, sizes, size), 0)), expect);
    };
    check([4, 4], 12, "T0+4 W0+4 T4+4 W4+4 T8+4 W8+4");
    check([16, 8], 32, "T0+16 W0+8 W8+8 T16+16 W16+8 W24+8");
    // fio writes 8 KiB and loses the other trims.
    check([4, 8], 8, "T0+4 W0+4 T4+4 W4+4");
    check([6, 4], 12, "T0+6 W0+4 W4+2 T6+6 W6+4 W10+2");
}

#[test]
fn equal_sizes_of_trims_and_writes_are_drawn_once() {
    let mut plan = trims(true, false, [4, 4], 1024);
    let sizes = BlockSizes::Range {
        min: 512,
        max: 4096,
    };
    plan.pattern.sizes = Each {
        read: sizes.clone(),
        write: sizes.clone(),
        trim: sizes,
    };
    let steps = steps(&plan, 0);
    assert!(steps.iter().any(|step| step.length != steps[0].length));
    for pair in steps.chunks(2) {
        assert_eq!(
            (pair[0].direction, pair[1].direction),
            (Direction::Trim, Direction::Write)
        );
        assert_eq!(
            (pair[0].offset, pair[0].length),
            (pair[1].offset, pair[1].length)
        );
    }
}

#[test]
fn the_end_of_a_pass_is_that_of_its_last_write() {
    let mut plan = trims(true, false, [4, 4], 12);
    plan.pace.loops = 2;
    let all = steps(&plan, 0);
    assert_eq!(all.len(), 12);
    let ends: Vec<bool> = all.iter().map(|step| step.ends_pass).collect();
    assert_eq!(ends[..6], [false, false, false, false, false, true]);
    let of_files: Vec<bool> = all.iter().map(|step| step.ends_file).collect();
    assert_eq!(ends, of_files);
}

#[test]
fn limits_hold_for_trims_and_for_writes() {
    let mut plan = trims(true, false, [4, 4], 64);
    plan.pace.number_ios = Some(3);
    let six = "T0+4 W0+4 T4+4 W4+4 T8+4 W8+4";
    assert_eq!(text(&steps(&plan, 0)), six);
    plan.pace.number_ios = None;
    plan.pace.io_size = Some(12 * KIB);
    assert_eq!(text(&steps(&plan, 0)), six);
    assert_eq!(Steps::new(&plan, 0, |_| 64 * KIB).expected(), Some(6));
    // A trimmed range is also written.
    plan.pattern.sizes.trim = BlockSizes::Fixed(8 * KIB);
    plan.pace.io_size = Some(10 * KIB);
    assert_eq!(text(&steps(&plan, 0)), "T0+8 W0+4 W4+4 T8+8 W8+4 W12+4");
}

#[test]
fn random_places_are_trimmed_and_written_once_each() {
    for sizes in [[4, 4], [8, 4], [16, 64]] {
        let plan = trims(true, true, sizes, 4096);
        let all = steps(&plan, 0);
        for pair in all.chunks(2) {
            let [trim, write] = pair else {
                panic!("a trim without a write: {pair:?}");
            };
            assert_eq!(trim.direction, Direction::Trim);
            assert_eq!(write.direction, Direction::Write);
            assert_eq!((trim.offset, trim.length), (write.offset, write.length));
            assert!(write.length <= Steps::length_max(&plan));
        }
        let (trimmed, written): (Vec<Step>, Vec<Step>) = all
            .iter()
            .partition(|step| step.direction == Direction::Trim);
        check_covers(&trimmed, 0, 4096 * KIB);
        check_covers(&written, 0, 4096 * KIB);
        assert!(!trimmed.is_sorted_by_key(|step| step.offset));
    }
}

#[test]
fn trims_alone_go_where_reads_would_go_by_their_own_sizes() {
    let all = steps(&trims(false, false, [16, 4], 64), 0);
    assert_eq!(text(&all), "T0+16 T16+16 T32+16 T48+16");
    let plan = trims(false, true, [16, 4], 4096);
    let all = steps(&plan, 0);
    assert!(all.iter().all(|step| step.direction == Direction::Trim));
    check_covers(&all, 0, 4096 * KIB);
    // Trims have no data, and need no buffer.
    assert_eq!(Steps::length_max(&plan), 0);
}

#[test]
fn files_that_take_turns_keep_their_own_pairs() {
    let mut plan = trims(true, false, [4, 4], 8);
    (plan.files.count, plan.files.open) = (2, 2);
    let all = steps(&plan, 0);
    for file in 0..2 {
        let own: Vec<Step> = all
            .iter()
            .filter(|step| step.file == file)
            .copied()
            .collect();
        assert_eq!(text(&own), "T0+4 W0+4 T4+4 W4+4", "{file}");
    }
    assert_ne!(all[0].file, all[1].file);
}

proptest! {
    #[test]
    fn any_sizes_trim_and_write_the_same_bytes(
        trim in 1_u64..40, more in 1_u64..10, write in 1_u64..400, blocks in 1_u64..200,
        random: bool, repeats: bool, seed: u64,
    ) {
        let mut plan = trims(true, random, [1, 1], 0);
        let (least, most) = (trim * 100, trim * 100 * more);
        plan.pattern.sizes.trim = BlockSizes::Range { min: least, max: most };
        plan.pattern.sizes.write = BlockSizes::Fixed(write);
        (plan.pattern.seed, plan.pattern.repeats) = (seed, repeats);
        let region = least * blocks;
        let all: Vec<Step> = Steps::new(&plan, 0, |_| region + 7).collect();
        let mut owed = 0..0;
        let mut written = 0;
        for step in &all {
            prop_assert!(step.length > 0 && step.offset + step.length <= region);
            if step.direction == Direction::Trim {
                prop_assert!(owed.is_empty());
                owed = step.offset..step.offset + step.length;
            } else {
                prop_assert_eq!(step.offset, owed.start);
                prop_assert!(step.length <= Steps::length_max(&plan));
                owed.start += step.length;
                written += step.length;
            }
        }
        prop_assert!(owed.is_empty() && owed.start == owed.end);
        match repeats && random {
            // Without a map, the rest of the file counts as well.
            true => prop_assert!((region + 7..region + 7 + most).contains(&written)),
            false => prop_assert_eq!(written, region),
        }
        prop_assert!(all.last().is_some_and(|step| step.ends_pass));
    }
}
