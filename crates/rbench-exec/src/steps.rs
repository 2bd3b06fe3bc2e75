//! Scripts of steps on names and open files, as a program of the loop of one operation at a
//! time, and of one that keeps a ring filled (`in_flight`). A [`Source`] says which step comes
//! next; here it is prepared (names, data), done inside the timer through [`Fs`], and recorded.
//! Rows, waits, errors and rounds are those of the script; which workload it belongs to is
//! nothing that is known here.

mod in_flight;

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::random::DataStream;
use rbench_core::script::PIECES_BYTES;
use rbench_core::{Call, Clock as _, Failure, FailureKind, Nanos, OpKind, Script};
use rbench_sys::{AlignedBuffer, Fs, fs};

use crate::in_flight::InFlight;
use crate::meter::{Meter, Span};
use crate::pace::Gate;
use crate::single::{Next, Program, one_by_one};
use crate::worker::Runner;

/// The names of a step, relative to the directory of the file system: their room is used
/// again and again.
#[derive(Debug, Clone, Default)]
pub struct Name(Vec<u8>);

impl Name {
    /// Another name, without a byte 0 in it.
    pub fn set(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.0.clear();
        write(&mut self.0);
        self.0.push(0);
    }

    /// The name; empty where there is none.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }
}

/// The names of a step.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The one that it works on.
    pub path: Name,
    /// The new name, or the target of a link.
    pub other: Name,
}

/// A step that is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Its system calls.
    pub script: Script,
    /// The kind, for failures.
    pub op: OpKind,
    /// Its row among those of the worker.
    pub lane: usize,
    /// Number of its round among those in flight.
    pub flight: usize,
    /// It is the first of its round.
    pub begins: bool,
    /// Number of the worker's open file that it opens, uses or closes.
    pub slot: usize,
    /// Intended start, by the worker's clock: response times count from there.
    pub intended: Option<Nanos>,
    /// Not before that, by the worker's clock; waiting for it is in no latency.
    pub not_before: Option<Nanos>,
}

/// The classification of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Done, or failed, as its calls said.
    Plain,
    /// Its object did not exist any more, or already existed: another worker was faster. Counted
    /// apart from errors.
    Missed,
}

/// The next step of a round.
#[derive(Debug, Clone, Copy)]
pub enum Coming {
    /// This step.
    Step(Step),
    /// Something else was done in its place: it is to be asked again.
    Again,
    /// Nothing before that instant, by the worker's clock: then it is to be asked again.
    Later(Nanos),
    /// Like `Later`, where that instant is the intended start of an operation that is passed over
    /// then.
    Due(Nanos),
    /// The round is over, and the next one has not started; its place has none before that instant.
    RoundOver(Option<Nanos>),
    /// Nothing any more, in any round in flight that is over.
    End,
}

/// A source of a worker's steps: rounds, one or several of them in flight.
pub trait Source {
    /// The next step of a round in flight; the names of a step go into `names`. Outside the timer.
    /// A round that is over begins another one.
    fn next(&mut self, flight: usize, names: &mut Names, gate: &Gate, meter: &mut Meter) -> Coming;

    /// The next step of that round does not start, as the gate is closed; the worker ends.
    fn put_back(&mut self, flight: usize);

    /// Takes the result of a step and its times; returns its classification. Outside the timer,
    /// before it is recorded.
    fn ended(
        &mut self,
        step: &Step,
        outcome: Result<u64, FailureKind>,
        time: (Nanos, Nanos),
    ) -> Verdict;

    /// Called after the recording of a step: rounds may be recorded.
    fn recorded(&mut self, _step: &Step, _gate: &Gate, _meter: &mut Meter) {}

    /// The row in which a close counts that failed when all is over.
    fn lane_of_close(&self) -> usize {
        0
    }

    /// The worker has ended.
    fn over(&mut self, _gate: &Gate, _meter: &mut Meter) {}

    /// Steps of all there is to do; 0: time decides.
    fn planned(&self) -> u64 {
        0
    }

    /// Returns true if the next step comes before all rounds: it is done in the flight 0 alone.
    fn comes_before_rounds(&self) -> bool {
        false
    }

    /// Returns true if all steps of a round are done, so that only its end comes next: that is
    /// noted also where the time is over.
    fn ends_round(&self, _flight: usize) -> bool {
        false
    }

    /// Returns true if rounds have intended starts.
    fn is_paced(&self) -> bool {
        false
    }
}

/// A source with what is known of its steps.
struct Account<S> {
    source: S,
    /// By slot: what it was opened as, for failures.
    opened: Vec<Name>,
    data: DataStream,
    issued: u64,
}

impl<S: Source> Account<S> {
    fn new(source: S, slots: usize, data: DataStream) -> Account<S> {
        Account {
            source,
            opened: vec![Name::default(); slots],
            data,
            issued: 0,
        }
    }

    /// Bytes of new data that a step needs.
    #[inline(always)]
    fn data_of(script: &Script) -> usize {
        match script.writes() {
            Some((call, all)) if all > call => call as usize + PIECES_BYTES,
            Some((call, _)) => call as usize,
            None => 0,
        }
    }

    /// Records what became of a step, on that path. Outside the timer.
    #[inline(always)]
    fn ended<'a>(
        &mut self,
        step: &Step,
        outcome: Result<u64, FailureKind>,
        (start, end): (Nanos, Nanos),
        path: impl Fn() -> &'a CStr,
        (gate, meter): (&Gate, &mut Meter),
    ) {
        self.issued += 1;
        let outcome = match outcome {
            // A missing attribute is a valid answer.
            Err(kind) if asks_for_attribute(&step.script) && kind == Errno::ENODATA.into() => Ok(0),
            outcome => outcome,
        };
        if step.script.leaves_open() && outcome.is_ok() {
            self.opened[step.slot].set(|to| to.extend_from_slice(path().to_bytes()));
        }
        let span = Span::due(step.intended, start, end);
        match (self.source.ended(step, outcome, (start, end)), outcome) {
            (Verdict::Missed, _) => meter.missed(step.lane, span),
            (Verdict::Plain, Ok(bytes)) => meter.done(step.lane, span, bytes),
            (Verdict::Plain, Err(kind)) => {
                let failure = self.failure(step, path(), kind);
                meter.failed(step.lane, span, failure);
            }
        }
        self.source.recorded(step, gate, meter);
    }

    #[cold]
    fn failure(&self, step: &Step, path: &CStr, kind: FailureKind) -> Failure {
        let name = match self.opened.get(step.slot) {
            Some(opened) if step.script.needs_open() => opened.as_c_str(),
            _ => path,
        };
        Failure::new(step.op, name.to_string_lossy(), kind)
    }

    /// A file that was left open was closed.
    fn closed(&self, slot: usize, result: Result<(), Errno>, meter: &mut Meter) {
        let Err(errno) = result else {
            return;
        };
        let path = self.opened[slot].as_c_str().to_string_lossy();
        let lane = self.source.lane_of_close();
        meter.failed_untimed(lane, Failure::new(OpKind::Close, path, errno));
    }
}

/// Size of a buffer for calls of this many bytes at most.
pub(crate) fn buffer_bytes(bytes_max: u64) -> usize {
    bytes_max as usize + PIECES_BYTES
}

/// Does the steps of a script.
pub struct StepRunner<S> {
    /// `None`: one round at a time. Dropped before the file system.
    flight: Option<InFlight<Option<Step>>>,
    account: Account<S>,
    hand: Hand,
    names: Names,
    /// The latest reading of the clock.
    now: Nanos,
}

/// The objects with which calls are made.
struct Hand {
    fs: Arc<dyn Fs>,
    /// By slot: what it holds open.
    files: Vec<Option<RawFd>>,
    buffer: AlignedBuffer,
}

impl<S: Source> StepRunner<S> {
    /// A runner of `source`, whose steps have this many slots and calls of up to `bytes_max`; it
    /// writes the data of `data`.
    ///
    /// # Errors
    /// When there is not the memory.
    pub fn new(
        source: S,
        fs: Arc<dyn Fs>,
        (slots, bytes_max): (usize, u64),
        data: DataStream,
    ) -> Result<StepRunner<S>, Failure> {
        let buffer = AlignedBuffer::new(buffer_bytes(bytes_max))
            .map_err(|errno| Failure::new(OpKind::Write, "", errno))?;
        Ok(StepRunner {
            flight: None,
            account: Account::new(source, slots, data),
            hand: Hand {
                fs,
                files: vec![None; slots],
                buffer,
            },
            names: Names::default(),
            now: Nanos(0),
        })
    }
}

impl Hand {
    /// Does it: the bytes that it moved. Inside the timer.
    #[inline(always)]
    fn perform(&mut self, step: &Step, names: &Names) -> Result<u64, FailureKind> {
        let script = &step.script;
        let mut own = None;
        let file = match script.needs_open() || script.leaves_open() {
            true => &mut self.files[step.slot],
            false => &mut own,
        };
        if script.needs_open() && file.is_none() {
            return Err(Errno::EBADF.into());
        }
        let paths = (names.path.as_c_str(), names.other.as_c_str());
        let (fs, buffer) = (self.fs.as_ref(), &mut self.buffer);
        let length = script.length as usize;
        let perform = |parts: &[_]| fs::perform(fs, (parts, length), paths, buffer, file);
        script.with_parts(perform).outcome()
    }

    #[inline(always)]
    fn close(&mut self, slot: usize) -> Result<(), Errno> {
        match self.files[slot].take() {
            Some(fd) => self.fs.close(fd),
            None => Err(Errno::EBADF),
        }
    }
}

/// True if the step reads an attribute.
fn asks_for_attribute(script: &Script) -> bool {
    matches!(script.call(), Some(Call::Getxattr(..)))
}

impl<S: Source> Program for StepRunner<S> {
    type Operation = Step;
    type Outcome = Result<u64, FailureKind>;

    #[inline(always)]
    fn next(&mut self, gate: &Gate, meter: &mut Meter) -> Next<Step> {
        if gate.closed(self.now) && !self.account.source.ends_round(0) {
            return Next::End(false);
        }
        match self.account.source.next(0, &mut self.names, gate, meter) {
            Coming::Step(step) => {
                let bytes = Account::<S>::data_of(&step.script);
                if bytes > 0 {
                    self.account.data.fill(&mut self.hand.buffer[..bytes]);
                }
                Next::Operation(step)
            }
            Coming::Again | Coming::RoundOver(None) => Next::Again,
            Coming::Later(at) | Coming::RoundOver(Some(at)) if gate.nap_until(at) => Next::Again,
            // Only an intended start is measured from.
            Coming::Due(at) if gate.wait(at) => Next::Again,
            Coming::Later(_) | Coming::Due(_) | Coming::RoundOver(_) => {
                self.account.source.put_back(0);
                Next::End(false)
            }
            Coming::End => Next::End(true),
        }
    }

    #[inline(always)]
    fn may_start(&mut self, step: &Step, gate: &Gate) -> bool {
        // Only an intended start is measured from.
        step.not_before.is_none_or(|at| gate.nap_until(at))
            && step.intended.is_none_or(|at| gate.wait(at))
    }

    #[inline(always)]
    fn is_sure(&self, _step: &Step) -> bool {
        // The gate was checked before it was prepared.
        true
    }

    #[inline(always)]
    fn put_back(&mut self, step: Step) {
        self.account.source.put_back(step.flight);
    }

    #[inline(always)]
    fn perform(&mut self, step: &Step, _gate: &Gate) -> Result<u64, FailureKind> {
        self.hand.perform(step, &self.names)
    }

    #[inline(always)]
    fn ended(
        &mut self,
        step: Step,
        outcome: Result<u64, FailureKind>,
        time: (Nanos, Nanos),
        gate: &Gate,
        meter: &mut Meter,
    ) {
        self.now = time.1;
        let path = || self.names.path.as_c_str();
        let to = (gate, meter);
        self.account.ended(&step, outcome, time, path, to);
    }
}

impl<S: Source> Runner for StepRunner<S> {
    fn run(&mut self, gate: &Gate, meter: &mut Meter, _upto: Option<u64>) {
        self.now = gate.clock.now();
        if let Some(mut flight) = self.flight.take() {
            flight.run(self, gate, meter);
            self.flight = Some(flight);
        } else {
            one_by_one(self, gate, meter);
        }
        self.account.source.over(gate, meter);
    }

    fn issued(&self, _meter: &Meter) -> u64 {
        self.account.issued
    }

    fn planned(&self) -> u64 {
        self.account.source.planned()
    }

    /// Closes what the script left open.
    fn finish(&mut self, meter: &mut Meter) {
        if let Some(ring) = self.flight.as_mut().and_then(InFlight::ring) {
            let files = self.hand.files.iter_mut().enumerate();
            files.for_each(|(number, file)| *file = ring.take_file(number));
        }
        for slot in 0..self.hand.files.len() {
            if self.hand.files[slot].is_none() {
                continue;
            }
            let result = self.hand.close(slot);
            self.account.closed(slot, result, meter);
        }
    }
}

#[cfg(test)]
mod tests {
    use rbench_core::{By, CpuClock, OpenFlags, Part, Times, linux};
    use rbench_sys::{FaultFs, TraceFs};

    use super::*;

    /// Does these, one after the other; what finds nothing is missed.
    struct Listed {
        steps: Vec<(Script, &'static str)>,
        at: usize,
    }

    impl Source for Listed {
        fn next(&mut self, _: usize, names: &mut Names, _: &Gate, _: &mut Meter) -> Coming {
            let Some((script, path)) = self.steps.get(self.at) else {
                return Coming::End;
            };
            self.at += 1;
            names.path.set(|to| to.extend(path.as_bytes()));
            names.other.set(|to| to.extend(b"other"));
            Coming::Step(Step {
                script: *script,
                op: OpKind::Stat,
                lane: 0,
                flight: 0,
                begins: true,
                slot: 0,
                intended: None,
                not_before: None,
            })
        }

        fn put_back(&mut self, _: usize) {
            self.at -= 1;
        }

        fn lane_of_close(&self) -> usize {
            1
        }

        fn ended(
            &mut self,
            _: &Step,
            outcome: Result<u64, FailureKind>,
            _: (Nanos, Nanos),
        ) -> Verdict {
            match outcome {
                Err(kind) if kind == Errno::ENOENT.into() => Verdict::Missed,
                _ => Verdict::Plain,
            }
        }
    }

    /// Runs a script: returns the calls, and (done, missed, failed, bytes).
    fn run(
        fs: impl Fs + 'static,
        lines: impl Fn() -> Vec<String>,
        steps: Vec<(Script, &'static str)>,
    ) -> (Vec<String>, [u64; 5]) {
        let gate = Gate::new(CpuClock::KERNEL, CpuClock::KERNEL.now());
        let mut meter = Meter::alone(&[OpKind::Stat, OpKind::Close]);
        let bytes = steps.iter().map(|(script, _)| script.length);
        let bytes = bytes.max().unwrap_or(0);
        let source = Listed { steps, at: 0 };
        let data = DataStream::new(&[1]);
        let mut runner =
            StepRunner::new(source, Arc::new(fs), (1, bytes), data).expect("there is memory");
        runner.run(&gate, &mut meter, None);
        runner.finish(&mut meter);
        let lane = meter.lane(0);
        let closes = meter.lane(1).failures.total();
        let failed = lane.failures.total();
        let counts = [lane.items, lane.missed, failed, lane.bytes, closes];
        (lines(), counts)
    }

    fn new_file() -> OpenFlags {
        OpenFlags::CREATE_NEW.with(linux::APPEND)
    }

    #[test]
    fn each_step_is_the_calls_that_it_says() {
        let fs = TraceFs::default();
        let on = |call, length| Script::new(Some(Part::once(call)), length);
        let all = Part {
            call: Call::Read,
            times: Times::UntilShort,
        };
        let written = Part {
            call: Call::Write,
            times: Times::UntilWritten(25),
        };
        let steps = vec![
            (on(Call::Open(new_file()), 0), "a"),
            (on(Call::Write, 7), ""),
            (on(Call::Fsync, 0), ""),
            (on(Call::Fdatasync, 0), ""),
            (on(Call::Close, 0), ""),
            (Script::whole(OpenFlags::READ, Some(all), 5), "a"),
            (Script::whole(new_file(), Some(written), 10), "b"),
            (on(Call::Stat(By::Link), 0), "c"),
            (on(Call::Rename(0), 0), "b"),
            (on(Call::Open(OpenFlags::READ), 0), "other"),
        ];
        let recorded = fs.clone();
        let (lines, counts) = run(fs, || recorded.lines(), steps);
        let expect = [
            "open a writes creates exclusive appends",
            "write a 7",
            "fsync a",
            "fdatasync a",
            "close a",
            "open a read",
            "read a 5",
            "read a 5",
            "close a",
            "open b writes creates exclusive appends",
            "write b 10",
            "write b 10",
            "write b 5",
            "close b",
            "stat c = ENOENT",
            "rename b -> other",
            "open other read",
            // It was left open.
            "close other",
        ];
        assert_eq!(lines, expect);
        assert_eq!(counts, [9, 1, 0, 7 + 7 + 25, 0]);
    }

    #[test]
    fn a_step_that_fails_is_counted_and_its_file_closed() {
        let trace = TraceFs::default();
        let fs = FaultFs::nth(trace.clone(), OpKind::Write, 0, Errno::EIO);
        let write = Some(Part::once(Call::Write));
        let steps = vec![
            (Script::whole(new_file(), write, 7), "a"),
            (Script::of(Call::Close), ""),
        ];
        let (lines, counts) = run(fs, || trace.lines(), steps);
        let expect = ["open a writes creates exclusive appends", "close a"];
        assert_eq!(lines, expect);
        assert_eq!(counts, [0, 0, 2, 0, 0]);
    }

    #[test]
    fn a_close_that_fails_when_all_is_over_is_told_in_the_row_of_closes() {
        let trace = TraceFs::default();
        let fs = FaultFs::nth(trace.clone(), OpKind::Close, 0, Errno::EIO);
        let steps = vec![(Script::of(Call::Open(new_file())), "a")];
        let (_, counts) = run(fs, || trace.lines(), steps);
        assert_eq!(counts, [1, 0, 0, 0, 1]);
    }
}
