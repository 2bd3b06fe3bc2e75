//! A workload from the command line to the exit code, on one screen ([`pipeline`]).

use std::ffi::OsString;
use std::time::Duration;

use rbench_cli::{Communicator as Which, Invocation, Output, Tool};
use rbench_comm::{Choice, Chosen, Combine, CommError, Communicator, World};
use rbench_core::Rank;
use rbench_plan::{Spec, task_counts};

use crate::command::{self, ONE_RANK_ONLY};
use crate::console::{complain, fail};
use crate::exit::{FAILED, SUCCESS};
#[cfg(feature = "mpi")]
use crate::launch::refuse_unconnected;
use crate::launch::{Launch, arrival};
#[cfg(not(feature = "mpi"))]
use crate::libexec;
use crate::outside::Outside;
use crate::refusal::{Refusal, say};
use crate::run::once;
use crate::series::resume;
use crate::signals::Signals;
use crate::{check, clean, files, probe, series};

/// Time for the launcher to notice that a host is gone.
const LAUNCHERS_TURN: Duration = Duration::from_secs(3);

/// Runs the workload of rank 0's command line.
pub fn run(argv: &[OsString]) -> u8 {
    let start = rbench_cli::start(argv);
    #[cfg(not(feature = "mpi"))]
    if start.communicator != Which::Solo
        && let Some(code) = libexec::replace_process(argv)
    {
        return code;
    }
    #[cfg(feature = "mpi")]
    if start.communicator == Which::Auto
        && let Some(code) = refuse_unconnected()
    {
        return code;
    }
    let choice = match start.communicator {
        Which::Auto => Choice::Auto,
        Which::Solo => Choice::Solo,
        Which::Mpi => Choice::Mpi,
    };
    let env = |name: &str| std::env::var(name).ok();
    let mut world = match rbench_comm::start(choice, arrival(start), env) {
        Ok(world) => world,
        // Rank 0 prints the reason.
        Err(CommError::Refused) => return FAILED,
        Err(error) => {
            return fail(FAILED, error.to_string());
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("the control plane cannot be started: {error}"));
            world.abort(i32::from(FAILED))
        }
    };
    let root = world.communicator().rank() == Rank(0);
    let code = match runtime.block_on(pipeline(&mut world, argv)) {
        Ok(code) => code,
        Err(Refusal::Silent(message)) => {
            complain(&message);
            // The report is out. If we abort while a daemon of Open MPI's launcher is unreachable,
            // the launcher may wait for that daemon forever. If we wait, it notices by itself and
            // ends all ranks.
            std::thread::sleep(LAUNCHERS_TURN);
            world.abort(i32::from(FAILED))
        }
        Err(refusal) => say(root, refusal),
    };
    match world.finish() {
        Ok(()) => code,
        Err(error) => fail(FAILED, error.to_string()),
    }
}

/// argv → Spec → Plan → outcomes → result → report.
async fn pipeline(world: &mut World, argv: &[OsString]) -> Result<u8, Refusal> {
    let given = match world.communicator().rank() {
        Rank(0) => resume::words(argv),
        _ => Ok(argv.to_vec()),
    };
    let words = given.as_deref().unwrap_or(argv);
    let launch = Launch::share(world.communicator(), words).await?;
    world.together();
    if resume::alone(&launch.argv).is_some() {
        return Err(Refusal::Usage(given.err().unwrap_or_default()));
    }
    let comm = world.communicator();
    let signals = Signals::new();
    match command::read(&launch)? {
        Invocation::Run(spec, output) => {
            let shown = (&output.serve, output.progress, output.quiet);
            let outside = Outside::open(comm, signals, shown).await?;
            let ended = counts(comm, &launch, (&spec, &output), &outside).await;
            outside.tell_end(&ended);
            ended
        }
        Invocation::Series(series) => {
            let of = &series.options;
            let outside = Outside::open(comm, signals, (&of.serve, of.progress, of.quiet)).await?;
            let ended = series::run(comm, &launch, &series, &outside).await;
            outside.tell_end(&ended);
            ended
        }
        Invocation::Tool(tool) => match tool {
            Tool::Probe(asked) => probe::run(comm, &launch, &asked, &signals).await,
            Tool::Check(asked) => check::run(comm, &launch, &asked, &signals).await,
            Tool::Clean(asked) => clean::run(comm, &launch, &asked, &signals).await,
            Tool::Record(_)
            | Tool::Testfs(_)
            | Tool::Watch { .. }
            | Tool::Show(_)
            | Tool::Report(_)
            | Tool::Compare(_)
            | Tool::Version
            | Tool::Verify(_)
            | Tool::Completions { .. }
            | Tool::Man { .. }
            | Tool::HoldLock { .. }
            | Tool::Fio(_) => Err(Refusal::Usage(ONE_RANK_ONLY.to_owned())),
        },
    }
}

/// Executes a run once for each number of ranks that the command line requests.
async fn counts(
    comm: &dyn Communicator,
    launch: &Launch,
    (spec, output): (&Spec, &Output),
    outside: &Outside,
) -> Result<u8, Refusal> {
    let output = &named(output, launch);
    let counts = task_counts(spec, comm.size()).map_err(|e| Refusal::Usage(e.to_string()))?;
    if counts == [comm.size()] {
        return once(comm, launch, (spec, output), outside, None).await;
    }
    let mut worst = SUCCESS;
    for ranks in counts {
        let (launch, output) = (launch.with(ranks), with(output, ranks));
        let leading = (0..ranks).map(Rank).collect();
        let code = match Chosen::of(comm, leading).await? {
            Some(part) => match once(&part, &launch, (spec, &output), outside, None).await {
                Err(Refusal::Silent(message)) => return Err(Refusal::Silent(message)),
                Err(refusal) => say(comm.rank() == Rank(0), refusal),
                Ok(code) => code,
            },
            None => SUCCESS,
        };
        let all = comm.all_reduce(Combine::Max, vec![u64::from(code)]).await?;
        worst = worst.max(all[0] as u8);
        // No further run after a signal or a failure.
        if worst > FAILED {
            break;
        }
    }
    Ok(worst)
}

/// The output options with the path of the result file.
fn named(output: &Output, launch: &Launch) -> Output {
    let mut output = output.clone();
    let name = |out| files::named_after(out, &launch.cwd, &launch.run_id);
    output.out = output.out.map(name);
    output
}

/// The output options of one run among several with different numbers of ranks: each has its own
/// result file.
fn with(output: &Output, ranks: u32) -> Output {
    let mut output = output.clone();
    output.out = output.out.map(|out| {
        let extension = out
            .extension()
            .map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
        out.with_extension(format!("{ranks}{extension}"))
    });
    output
}
