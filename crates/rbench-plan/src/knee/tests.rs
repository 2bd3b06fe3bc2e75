use super::*;
use crate::testing::{check_error, words};

/// A server that answers `capacity` operations per second, each in a fixed time.
struct Server {
    capacity: f64,
    /// The numbers of the steps that something else disturbs, from 0.
    spoilt: Vec<usize>,
}

impl Server {
    fn of(capacity: f64) -> Server {
        Server {
            capacity,
            spoilt: Vec::new(),
        }
    }

    fn answer(&self, step: Step, number: usize) -> Tried {
        let held = step.rate <= self.capacity && !self.spoilt.contains(&number);
        Tried {
            rate: step.rate,
            stage: step.stage,
            held,
            clearly: step.rate > 1.2 * self.capacity,
            window: step.window,
            share: None,
        }
    }

    /// Runs all steps to the end.
    fn run(&self, search: &Search, reached: Reached) -> Vec<Tried> {
        steps(search, reached, |step, number| self.answer(step, number))
    }
}

/// Runs all steps to the end, each with this answer to it and its number.
fn steps(search: &Search, reached: Reached, answer: impl Fn(Step, usize) -> Tried) -> Vec<Tried> {
    let mut tried = Vec::new();
    while let Some(step) = search.next(reached, &tried) {
        tried.push(answer(step, tried.len()));
        assert!(tried.len() < 40, "it ends: {tried:?}");
    }
    tried
}

fn search() -> Search {
    Search {
        objective: Objective {
            limits: vec![Limit {
                figure: Figure::Percentile(99.0),
                most: Nanos(10_000_000),
            }],
            ..Objective::default()
        },
        from: None,
        to: None,
        precision: 0.05,
        time: Nanos(2_000_000_000),
        arrival: Arrival::Uniform,
    }
}

fn any(rate: f64) -> Reached {
    Reached {
        rate,
        grain: 0.0,
        least: 0.0,
    }
}

fn last_confirmed(all: &[Tried]) -> f64 {
    let last = all.last().expect("steps");
    assert_eq!((last.stage, last.held), (Stage::Confirm, true), "{all:?}");
    last.rate
}

#[test]
fn the_rate_is_found_from_wherever_the_search_starts() {
    for capacity in [0.7, 12.0, 499.0, 1000.0, 123_456.0] {
        for reached in [0.1, 0.5, 1.0, 3.0, 40.0] {
            let all = Server::of(capacity).run(&search(), any(reached * capacity));
            let knee = last_confirmed(&all);
            let near = 0.94 * capacity..=capacity;
            assert!(near.contains(&knee), "{knee} of {capacity}");
            let low = all.iter().filter(|tried| !tried.held);
            let high = low.map(|tried| tried.rate).fold(f64::INFINITY, f64::min);
            assert!(high > knee && high <= 1.06 * knee, "{high} above {knee}");
        }
    }
}

#[test]
fn the_time_is_estimated_beforehand() {
    // 250, 500, 1000, twice 2000, and so on, each for 5 s or 10,000 operations.
    let expected = search().expected(any(1000.0), &[]);
    let all = Server::of(1300.0).run(&search(), any(1000.0));
    let time: u64 = all.iter().map(|step| step.window.0).sum();
    assert!(expected.steps.abs_diff(all.len()) <= 2, "{expected:?}");
    assert!(expected.time.0.abs_diff(time) < time / 4, "{expected:?}");
    assert_eq!(search().operations(), 10_000);
    let least = search().expected_least();
    let (steps, confirming) = (least.steps as u64 - 1, 3);
    assert_eq!(least.time, Nanos((steps + confirming) * 2_000_000_000));
}

#[test]
fn the_time_is_estimated_again_while_no_rate_holds() {
    let all = Server::of(100.0).run(&search(), any(1000.0));
    let failed = all.iter().take_while(|step| !step.held).count();
    assert!(failed > 1, "{all:?}");
    let rest: u64 = all[failed..].iter().map(|step| step.window.0).sum();
    let expected = search().expected(any(1000.0), &all[..failed]);
    assert!(
        expected.steps.abs_diff(all.len() - failed) <= 2,
        "{expected:?}"
    );
    assert!(expected.time.0.abs_diff(rest) < rest / 4, "{expected:?}");
}

#[test]
fn a_rate_that_is_spoilt_once_is_tried_again() {
    let whole = last_confirmed(&Server::of(1000.0).run(&search(), any(1000.0)));
    for spoilt in 0..8 {
        let mut server = Server::of(1000.0);
        server.spoilt.push(spoilt);
        let all = server.run(&search(), any(1000.0));
        let near = last_confirmed(&all) >= 0.94 * whole;
        assert!(near, "step {spoilt} spoilt: {all:?}");
    }
}

#[test]
fn every_row_that_is_judged_has_a_hundred_operations_above_its_percentile() {
    let search = search();
    for (share, least) in [(0.25, 10_000.0), (0.001, 10_000.0 * 0.001 / LEAST_SHARE)] {
        let tried = steps(&search, any(1000.0), |step, number| {
            let answer = Server::of(1000.0).answer(step, number);
            Tried {
                share: answer.held.then_some(share),
                ..answer
            }
        });
        // The first step shows how rare the row is.
        let later = tried.iter().skip(1);
        for one in later.filter(|one| one.held) {
            let of_row = one.rate * one.window.as_secs_f64() * share;
            assert!(of_row >= least * 0.99, "{share}: {of_row} of {one:?}");
        }
        let confirmed = |one: &Tried| one.stage == Stage::Confirm && one.held;
        assert!(tried.iter().any(confirmed));
    }
}

#[test]
fn each_step_draws_arrivals_of_its_own_unless_the_workload_has_a_seed() {
    let seeded = |form: Form, text: &str, number| {
        let mut words = words(text);
        form.seed(&mut words, (7, number));
        words
    };
    let io = "io --rw randread";
    assert_ne!(seeded(Form::Native, io, 1), seeded(Form::Native, io, 2));
    assert_eq!(seeded(Form::Native, io, 1), seeded(Form::Native, io, 1));
    let own = "io --rw randread --seed 3";
    assert_eq!(seeded(Form::Native, own, 1), words(own));
    let fio = seeded(Form::Fio, "fio --rw=read", 1);
    let first = fio[1].to_string_lossy();
    assert!(first.starts_with("--randseed="), "{fio:?}");
}

#[test]
fn what_a_longer_window_does_not_confirm_is_taken_back() {
    let search = search();
    let tried = steps(&search, any(1000.0), |step, number| {
        // In a long window it only sustains 800.
        let confirms = step.stage == Stage::Confirm;
        let bears = if confirms { 800.0 } else { 1000.0 };
        Server::of(bears).answer(step, number)
    });
    let rate = last_confirmed(&tried);
    assert!(rate <= 800.0 && rate > 600.0, "{tried:?}");
}

#[test]
fn nothing_below_the_lowest_and_above_the_highest_rate_is_tried() {
    let limited = Search {
        from: Some(300.0),
        to: Some(700.0),
        ..search()
    };
    for capacity in [100.0, 500.0, 5000.0] {
        let all = Server::of(capacity).run(&limited, any(capacity));
        let inside = |step: &Tried| (300.0..=700.0).contains(&step.rate);
        assert!(all.iter().all(inside), "{all:?}");
        match capacity {
            100.0 => assert!(all.iter().all(|tried| !tried.held)),
            500.0 => assert!(last_confirmed(&all) > 470.0),
            _ => assert_eq!(last_confirmed(&all), 700.0),
        }
    }
}

#[test]
fn rates_are_multiples_of_what_the_workload_can_be_given() {
    let reached = Reached {
        rate: 1000.0,
        grain: 48.0,
        least: 0.0,
    };
    let all = Server::of(1000.0).run(&search(), reached);
    assert!(all.iter().all(|step| step.rate % 48.0 == 0.0));
    assert_eq!(last_confirmed(&all), 960.0);
    // There is no lower possible rate.
    let reached = Reached {
        least: 470.0,
        ..reached
    };
    let all = Server::of(1000.0).run(&search(), reached);
    assert!(all.iter().all(|step| step.rate >= 480.0));
    assert_eq!(last_confirmed(&all), 960.0);
    let all = Server::of(100.0).run(&search(), reached);
    assert!(all.iter().all(|step| step.rate == 480.0 && !step.held));
}

#[test]
fn a_step_is_as_long_as_its_percentile_needs() {
    let search = search();
    let seconds = |rate: f64, stage| search.step(rate, stage).window.as_secs_f64();
    assert_eq!(seconds(1000.0, Stage::Search), 10.0);
    assert_eq!(seconds(1000.0, Stage::Confirm), 30.0);
    assert_eq!(seconds(100_000.0, Stage::Search), 2.0);
    let mut errors = search.clone();
    errors.objective.errors = 0.001;
    let window = errors.step(1000.0, Stage::Search).window;
    assert_eq!(window.as_secs_f64(), 100.0);
}

#[test]
fn an_option_in_the_place_of_the_workload_is_named() {
    let words = ["--dir", "/mnt/fs"].map(OsString::from);
    let refused = Form::of(&words).map_err(|error| error.to_string());
    let said = "the workload is missing before --dir: name io, meta, mix or fio after --";
    assert_eq!(refused, Err(said.to_owned()));
}

#[test]
fn workloads_get_their_rate_in_their_own_form() {
    let step = Step {
        rate: 250.0,
        stage: Stage::Search,
        window: Nanos(2_500_000_000),
    };
    let check = |text: &str, step: Step, arrival: Arrival, expect: &str| {
        let given = words(text);
        let form = Form::of(&given).expect("a workload");
        assert_eq!(form.words(&given, step, arrival, [25, 0, 0]), words(expect));
    };
    each! { check:
        "io --bs 4k" => step => Arrival::Poisson =>
            "io --rate 250 --arrival poisson --time 2500ms --bs 4k";
        "fio --name=a" => step => Arrival::Uniform =>
            "fio --rate_iops=25,0,0 --rate_process=linear --runtime=2500ms --time_based=1 --name=a";
        "meta" => search().first() => Arrival::Uniform => "meta --time 2000ms";
    }
}

#[test]
fn what_the_search_decides_and_what_has_no_rate_is_refused() {
    let check = |text: &str, part: &str| check_error(Form::of(&words(text)), part);
    check("io --rate 5", "has --rate");
    check("io --time=5", "--time before --");
    check("fio --name=a --runtime=5", "--runtime");
    check("mdtest -n 5", "phases of meta");
    check("sweep", "io, meta, mix or fio");
}

#[test]
fn an_objective_names_a_figure_and_its_limit() {
    let time = |figure, most| {
        Ok(Slo::Time(Limit {
            figure,
            most: Nanos(most),
        }))
    };
    assert_eq!(slo("p99=10ms"), time(Figure::Percentile(99.0), 10_000_000));
    assert_eq!(
        slo("p999=1s"),
        time(Figure::Percentile(99.9), 1_000_000_000)
    );
    assert_eq!(slo("p99.9=1s"), slo("p999=1s"));
    assert_eq!(slo("mean=500us"), time(Figure::Mean, 500_000));
    assert_eq!(slo("max=2s"), time(Figure::Max, 2_000_000_000));
    let no_unit = "--slo p99=10 has no unit: write 10ms or 10s";
    assert_eq!(slo("p99=10"), Err(no_unit.to_owned()));
    let no_limit = "--slo needs FIGURE=LIMIT, for example p99=10ms";
    assert_eq!(slo("p99"), Err(no_limit.to_owned()));
    assert_eq!(slo("errors=0"), Ok(Slo::Errors(0.0)));
    assert_eq!(slo("errors=50%"), Ok(Slo::Errors(0.5)));
    let words = "p99 p100=1ms p0=1ms p=1ms q99=1ms p99=0 p99=fast errors=5 errors=101% p9x=1ms p9\u{e9}=1ms";
    for wrong in words.split(' ') {
        assert!(slo(wrong).is_err(), "{wrong}");
    }
}
