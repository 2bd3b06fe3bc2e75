//! Several runs from one launch, one after the other ([`run`]). Rank 0 decides the next cell and
//! sends it to all ranks; the selected ranks run it.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rbench_cli::series::{Course as Asking, Overview, Series};
use rbench_cli::{Invocation, Mistake, Output, Progress, Stop, Tool};
use rbench_comm::{Chosen, Combine, CommError, Communicator};
use rbench_core::Rank;
use rbench_core::plain::plain;
use rbench_exec::ExecError;
use rbench_plan::series::Cell;
use rbench_plan::{Plan, Spec};
use rbench_report::schema::CheckResult;
use rbench_sys::WorkDir;
use serde::{Deserialize, Serialize};

use crate::check;
use crate::command::{self, ONE_RANK_ONLY};
use crate::console::complain;
use crate::console::{print, to_stderr};
use crate::exit::{FAILED, SUCCESS};
use crate::hosts::Hosts;
use crate::launch::Launch;
use crate::outside::Outside;
use crate::page;
use crate::publish::conclude;
use crate::refusal::{Refusal, checked_at_root};
use crate::report::{Report, Sink};
use crate::run::{once, plan};
use crate::trouble::tell;

mod course;
mod dry_run;
mod record;
pub mod resume;

use course::{Around, Course};
use record::Record;

/// The next step, as rank 0 announces it.
#[derive(Clone, Serialize, Deserialize)]
enum Turn {
    /// A cell's launch, the ranks that run it, and true if its result goes into a file.
    Cell(Box<Launch>, Vec<Rank>, bool),
    /// The series ends with this exit code.
    End(u8),
    /// The series is impossible, for this reason.
    Refused(String),
}

impl From<String> for Turn {
    fn from(message: String) -> Turn {
        Turn::Refused(message)
    }
}

/// Runs a series; the exit code: that of the worst cell.
pub async fn run(
    comm: &dyn Communicator,
    launch: &Launch,
    series: &Series,
    outside: &Outside,
) -> Result<u8, Refusal> {
    let hosts = Hosts::find(comm).await?;
    let check = match &series.overview {
        Some(overview) => {
            checked_at_root(comm, || page::is_free(&page_of(launch, overview))).await?;
            let of = (
                overview.dir.as_path(),
                series.options.progress == Progress::Off,
            );
            match check::of_directory(comm, launch, of, &outside.signals).await? {
                Ok(check) => check,
                Err(stopped) => return Ok(stopped),
            }
        }
        None => None,
    };
    let lead = (comm.rank() == Rank(0)).then(|| Lead::begin(launch, series, check, &hosts));
    loop {
        let turn = lead.as_ref().map(|lead| match lead {
            Ok(lead) => lead.next(),
            Err(end) => end.clone(),
        });
        let turn = comm.broadcast_value(Rank(0), &turn).await?;
        let (launch, members, file) = match turn.ok_or(CommError::Garbled(Rank(0)))? {
            Turn::Cell(launch, members, file) => (launch, members, file),
            Turn::End(code) => return Ok(code),
            Turn::Refused(message) => return Err(Refusal::Usage(message)),
        };
        let lead = lead.as_ref().and_then(|lead| lead.as_ref().ok());
        let (spec, mut output) = cell_of(&launch, series)?;
        // Ranks gather data depending on `out`, so all must have one or none.
        output.out = match lead {
            Some(lead) => lead.cell_file(),
            None => file.then(PathBuf::new),
        };
        let sink: Sink = match lead.cloned() {
            Some(lead) => Rc::new(move |report: &mut Report| lead.take(report)),
            // Other ranks have no result.
            None => Rc::new(|_: &mut Report| SUCCESS),
        };
        let ended = match Chosen::of(comm, members).await? {
            Some(part) => once(&part, &launch, (&spec, &output), outside, Some(sink)).await,
            None => Ok(SUCCESS),
        };
        let (code, error) = match ended {
            Ok(code) => (code, None),
            Err(Refusal::Usage(message) | Refusal::Failed(message)) => (FAILED, Some(message)),
            Err(refusal) => return Err(refusal),
        };
        let all = comm.all_reduce(Combine::Max, vec![u64::from(code)]).await?;
        if let Some(lead) = lead {
            lead.ended(all[0] as u8, error);
        }
    }
}

/// Path of an overview's page.
fn page_of(launch: &Launch, overview: &Overview) -> PathBuf {
    let usual = || PathBuf::from(format!("rbench-{}.html", launch.run_id));
    Path::new(&launch.cwd).join(overview.html.clone().unwrap_or_else(usual))
}

/// The workload and output options of a cell. Its result goes to the series.
fn cell_of(launch: &Launch, series: &Series) -> Result<(Spec, Output), Refusal> {
    match command::read(launch)? {
        Invocation::Run(spec, output) => {
            let output = Output {
                labels: series.options.labels.clone(),
                progress: series.options.progress,
                quiet: series.options.quiet,
                serve: series.options.serve.clone(),
                ..output
            };
            Ok((*spec, output))
        }
        Invocation::Series(_)
        | Invocation::Tool(Tool::Probe(_) | Tool::Check(_) | Tool::Clean(_)) => Err(
            Refusal::Usage("a series cannot be part of another one".to_owned()),
        ),
        Invocation::Tool(_) => Err(Refusal::Usage(ONE_RANK_ONLY.to_owned())),
    }
}

/// The series at rank 0.
struct Lead {
    state: RefCell<State>,
    course: Box<dyn Course>,
    /// The launch of the series.
    launch: Launch,
    /// The host of each launched rank.
    host_of: Vec<u32>,
    /// Path of the page, if there is one.
    page: Option<PathBuf>,
    /// True if progress is shown.
    shows: bool,
}

struct State {
    record: Record,
    /// The cell that is running.
    now: Option<(u32, Cell)>,
    /// The worst exit code until now.
    worst: u8,
}

impl Lead {
    /// Checks that every known cell can be run, before anything is changed. Then starts the series.
    ///
    /// # Errors
    /// The end of the series: a sentence that names the cell, option or file, or the exit code where
    /// nothing is to be run.
    fn begin(
        launch: &Launch,
        series: &Series,
        check: Option<CheckResult>,
        hosts: &Hosts,
    ) -> Result<Rc<Lead>, Turn> {
        let host_of = hosts.topology.host_of.clone();
        let earlier = record::earlier(launch, &series.options)?;
        let around = Around {
            launch,
            host_of: &host_of,
            earlier: earlier.as_ref(),
        };
        let course = course::of(series, around)?;
        let outline = course.outline();
        let mut cells = Vec::new();
        for (index, cell) in outline.cells.iter().chain(&outline.forms).enumerate() {
            let plan = plan_of(launch, series, cell, &host_of).map_err(|message| {
                let message = match cell.name.as_str() {
                    _ if message.starts_with("--over ") => message,
                    // The cells of a search differ in the rate only, which is none of the user's.
                    _ if outline.result.kind == "knee" => message,
                    name if message.starts_with(name) => message,
                    name => format!("{name}: {message}"),
                };
                match outline.places.get(index) {
                    Some(place) => format!("{place}: {message}"),
                    None => message,
                }
            })?;
            if outline.dry_run {
                cells.push((cell, plan));
            }
        }
        if outline.dry_run {
            return Err(Turn::End(print(&dry_run::text(outline, &cells))));
        }
        let names = hosts.topology.hosts.iter().map(|host| host.name.clone());
        let world = (host_of.len() as u32, names.collect());
        let page = series.overview.as_ref();
        let page = page.map(|overview| page_of(launch, overview));
        if let Some(parent) = &outline.parent {
            WorkDir::check_parent(parent).map_err(|e| e.to_string())?;
        }
        course.start()?;
        let record = Record::begin(launch, &series.options, (course.as_ref(), check), world)
            .inspect_err(|_| course.over(None, false))?;
        let shows = series.options.progress != Progress::Off;
        if let Some(line) = outline.beforehand.as_ref().filter(|_| shows) {
            complain(line);
        }
        Ok(Rc::new(Lead {
            state: RefCell::new(State {
                record,
                now: None,
                worst: SUCCESS,
            }),
            course,
            launch: launch.clone(),
            host_of,
            page,
            shows,
        }))
    }

    /// The next step; after a signal, the end.
    fn next(&self) -> Turn {
        let state = &mut *self.state.borrow_mut();
        if state.worst <= FAILED
            && let Some((index, cell)) = self.course.next(state.record.series())
        {
            return self.turn(state, index, cell);
        }
        let published = state.record.publish(true).max(self.write_page(state));
        let (series, resumable) = (state.record.series(), state.record.has_file());
        self.course.over(Some(series), resumable);
        Turn::End(state.worst.max(published))
    }

    fn turn(&self, state: &mut State, index: u32, cell: Cell) -> Turn {
        let members = match cell.selection.members(&self.host_of) {
            Ok(members) => members,
            // Checked before the first cell; an adaptive course selects no ranks.
            Err(error) => return Turn::Refused(error.to_string()),
        };
        if let Err(message) = self.course.begin(index) {
            return self.given_up(state, message);
        }
        let launch = self.launch.of_cell(index, &cell.words);
        let turn = Turn::Cell(Box::new(launch), members, state.record.has_file());
        if self.shows {
            complain(&state.record.progress(index, &cell));
        }
        state.record.cell_begins();
        state.now = Some((index, cell));
        turn
    }

    /// Writes the page of the finished cells and returns the exit code.
    fn write_page(&self, state: &State) -> u8 {
        let series = state.record.series();
        let Some(page) = self.page.as_ref().filter(|_| !series.cells.is_empty()) else {
            return SUCCESS;
        };
        match page::of_series(series, page) {
            Ok(()) => {
                if self.shows {
                    to_stderr(&format!("page: {}\n", plain(&page.to_string_lossy())));
                }
                SUCCESS
            }
            Err(why) => {
                complain(&why);
                FAILED
            }
        }
    }

    /// Ends the series early and publishes its results.
    fn given_up(&self, state: &mut State, message: String) -> Turn {
        complain(&message);
        let published = state.record.publish(false);
        self.course
            .over(Some(state.record.series()), state.record.has_file());
        Turn::End(FAILED.max(published))
    }

    /// Base path of the running cell's journal.
    fn cell_file(&self) -> Option<PathBuf> {
        let state = self.state.borrow();
        let (index, _) = state.now.as_ref()?;
        state.record.cell_file(*index)
    }

    /// Records that the cell has ended on all ranks.
    fn ended(&self, code: u8, error: Option<String>) {
        let state = &mut *self.state.borrow_mut();
        state.worst = state.worst.max(code);
        let Some((index, cell)) = state.now.take() else {
            return;
        };
        if error.is_some() {
            state.record.failed(index, &cell, error);
        }
        let progress = self.course.ended(index, state.record.series());
        if let Some(line) = progress.filter(|_| self.shows) {
            to_stderr(&line);
        }
    }

    /// Takes the result of the running cell.
    fn take(&self, report: &mut Report) -> u8 {
        let state = &mut *self.state.borrow_mut();
        let file = report.file.take();
        let trouble = conclude(report);
        let mut code = tell(trouble.as_deref());
        if let Some((index, cell)) = &state.now {
            let kept = state.record.take(*index, cell, &report.result, trouble);
            if kept && let Some(file) = file {
                file.discard();
            }
            // After these errors nothing else is written.
            let silent = matches!(
                report.broken,
                Some(ExecError::Lost(_) | ExecError::NoAnswer | ExecError::Comm(_))
            );
            if report.signalled || silent {
                code = code.max(state.record.publish(false));
            }
        }
        report.published = Some(code);
        code
    }
}

/// The plan of a cell on the selected ranks.
///
/// # Errors
/// The reason why it cannot be run there.
fn plan_of(launch: &Launch, series: &Series, cell: &Cell, host_of: &[u32]) -> Result<Plan, String> {
    let members = cell.selection.members(host_of).map_err(|e| e.to_string())?;
    let launch = launch.of_cell(0, &cell.words);
    let refused = |refusal: Refusal| match refusal {
        Refusal::Cli(stop) => {
            unknown_key(&stop, series).unwrap_or_else(|| stop.sentence().to_owned())
        }
        Refusal::Usage(text) | Refusal::Failed(text) | Refusal::Silent(text) => text,
    };
    if let Some(word) = ["--out", "--format", "--serve"]
        .iter()
        .find(|w| has(&cell.words, w))
    {
        return Err(format!("{word} belongs to the series: give it before --"));
    }
    if has(&cell.words, "--hlog") {
        return Err("--hlog is for a single run: the runs of a series would share it".to_owned());
    }
    let (spec, output) = cell_of(&launch, series).map_err(refused)?;
    let of_members: Vec<u32> = members.iter().map(|r| host_of[r.0 as usize]).collect();
    // An earlier cell may write this file; any number serves for the check.
    let reads = command::front_end(&spec, &output).status_to_read();
    let stonewalled = reads.map(|_| 1);
    plan(&spec, &renumbered(&of_members), &launch, stonewalled).map_err(refused)
}

/// The refusal of a key that the workload does not have as an option; `None` for other errors.
fn unknown_key(stop: &Stop, series: &Series) -> Option<String> {
    let (Asking::Sweep(sweep), Some(Mistake::Option { typed, near })) =
        (&series.course, &stop.mistake)
    else {
        return None;
    };
    let key = typed.trim_start_matches('-');
    let key = &sweep.over.iter().find(|over| over.key == key)?.key;
    Some(match near {
        Some(near) => format!(
            "--over {key}: did you mean {}?",
            near.trim_start_matches('-')
        ),
        None => format!("--over {key}: the workload has no option {typed}"),
    })
}

/// Returns true if an option is given.
fn has(words: &[OsString], option: &str) -> bool {
    let option = option.as_bytes();
    words.iter().any(|word: &OsString| {
        let word = OsStr::as_bytes(word);
        word == option || word.starts_with(option) && word.get(option.len()) == Some(&b'=')
    })
}

/// Renumbers hosts from 0 in the order of their first ranks.
fn renumbered(host_of: &[u32]) -> Vec<u32> {
    let mut seen: Vec<u32> = Vec::new();
    host_of
        .iter()
        .map(|host| {
            let place = seen.iter().position(|other| other == host);
            place.unwrap_or_else(|| {
                seen.push(*host);
                seen.len() - 1
            }) as u32
        })
        .collect()
}
