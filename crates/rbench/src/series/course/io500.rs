//! The runs of `rbench suite io500`. The phases are command lines of [`rbench_plan::io500`]. This
//! module creates the state that the phases share: their directory, the time stamp, and the signs
//! of complete sets of files.

use std::cell::RefCell;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use rbench_cli::series;
use rbench_core::{Call, OpenFlags};
use rbench_exec::removal::Remover;
use rbench_plan::io500::{self, FILES, PHASES, Phase, Places, Settings};
use rbench_plan::series::Cell;
use rbench_report::schema::{Io500Phase, Io500Result, SeriesResult};
use rbench_report::series::{REHEARSAL, io500_line};
use rbench_sys::caches::may_drop_caches;
use rbench_sys::{Fs as _, PosixFs, WorkDir, testdir, workdir};

use super::suite::{ANY_DIR, absolute, mount};
use super::{Around, Course, Outline, setting};
use crate::console::complain;
use crate::marker;

/// Subdirectory of the run's directory that is searched and measured.
const DATA: &str = "data";
/// Number of threads that remove an interrupted launch's files.
const REMOVING: u32 = 16;
/// Subdirectory of the stonewalls' status files, the time stamp, and the signs of complete sets of
/// files.
const STATE: &str = "state";

/// The phases of IO500, one after the other.
pub struct Io500 {
    phases: Vec<&'static Phase>,
    /// The directory to test.
    parent: PathBuf,
    /// Name of the run's directory in `parent`.
    name: String,
    marker: Vec<u8>,
    /// True if an earlier launch may have created that directory.
    resumes: bool,
    made: RefCell<Option<WorkDir>>,
    quiet: bool,
    /// Dropped after `made`: it may hold the mount.
    outline: Outline,
}

impl Io500 {
    /// Reads the settings. Creates nothing except the built-in file system.
    pub fn new(asked: &series::Suite, quiet: bool, around: Around<'_>) -> Result<Io500, String> {
        let mut settings = match &asked.ini {
            Some(file) => read(file, around)?,
            None => Settings::default(),
        };
        if let Some(seconds) = asked.stonewall {
            settings.set_stonewall(seconds);
        }
        let settings = settings.scaled(asked.scale)?;
        if settings.drops_caches() && !asked.dry_run && !may_drop_caches() {
            return Err("drop-caches = TRUE needs root".to_owned());
        }
        let given = asked.dir.clone();
        let given = given.or_else(|| settings.dir().map(PathBuf::from));
        let mut embedded = None;
        let parent = match given.as_ref().or(asked.env_dir.as_ref()) {
            Some(dir) => absolute(dir, around)?,
            None if asked.dry_run => ANY_DIR.to_owned(),
            None if around.host_of.iter().any(|host| *host > 0) => {
                return Err(
                    "several hosts need a directory that all of them see: give --dir".to_owned(),
                );
            }
            None => embedded.insert(mount()?).path().display().to_string(),
        };
        if parent.contains('@') {
            return Err(format!(
                "--dir {parent}: the path must not contain @, which ends a path in mdtest and IOR"
            ));
        }
        let earlier = around.earlier.and_then(|earlier| name_in(earlier, &parent));
        let resumes = earlier.is_some();
        let name =
            earlier.unwrap_or_else(|| format!("{}{}", workdir::PREFIX, around.launch.run_id));
        let within = |folder: &str| format!("{parent}/{name}/{folder}");
        let (data, state) = (within(DATA), within(STATE));
        let places = Places {
            data: &data,
            state: &state,
        };
        let keys = settings.all().into_iter().map(setting).collect();
        let foretold = settings.invalid_because(asked.scale);
        let why = foretold
            .iter()
            .map(|why| format!("it will be invalid because {why}"));
        let mut outline = Outline {
            embedded,
            dry_run: asked.dry_run,
            // Reads cover data written before the stonewall, and are assumed to be as fast.
            most_s: Some(settings.stonewall_s() as f64),
            remarks: [REHEARSAL.to_owned()].into_iter().chain(why).collect(),
            out_dir: settings.result_dir().map(PathBuf::from),
            ..Outline::new("io500", keys, io500::cells(&settings, places))
        };
        let result = &mut outline.result;
        result.suite = Some(format!("{} {}", io500::NAME, io500::VERSION));
        result.scale = asked.scale;
        result.dir = Some(Path::new(&parent).join(&name).display().to_string());
        result.io500 = Some(without_results(&settings, foretold));
        Ok(Io500 {
            outline,
            phases: settings.phases(),
            marker: marker::marker(
                name.trim_start_matches(workdir::PREFIX),
                &around.launch.origin,
            )
            .into_bytes(),
            parent: PathBuf::from(&parent),
            name,
            resumes,
            made: RefCell::new(None),
            quiet,
        })
    }

    fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Returns true if a set of files is complete and unchanged.
    fn is_whole(&self, files: &str) -> bool {
        let sign = self.path().join(whole(files));
        self.made.borrow().is_some() && testdir::is_there(&sign).unwrap_or(false)
    }

    /// Opens the run's directory of an earlier launch.
    fn adopt(&self) -> Result<Option<WorkDir>, String> {
        let runs = WorkDir::find(&self.parent).map_err(|e| e.to_string())?;
        let runs = runs.marked;
        let Some((_, marker)) = runs.into_iter().find(|(name, _)| *name == self.name) else {
            return Ok(None);
        };
        let path = self.path();
        if let Some(process) = marker::at_work(&marker) {
            return Err(format!(
                "process {process} still works in {}",
                path.display()
            ));
        }
        let of_run = |marker: &[u8]| marker.split(|b| *b == b'\n').next().map(<[u8]>::to_vec);
        if of_run(&marker) != of_run(&self.marker) {
            return Ok(None);
        }
        let opened = WorkDir::open(&self.parent, &self.name, &marker).map_err(|e| e.to_string())?;
        if let Some(dir) = &opened {
            dir.mark(&self.marker).map_err(|e| e.to_string())?;
        }
        Ok(opened)
    }

    /// Prepares the run's directory for a phase.
    fn prepare(&self, dir: &WorkDir, phase: &Phase) -> Result<(), String> {
        let remover = Remover::new(REMOVING);
        let remove = |name: &str| {
            let removed = remover.with(|how| dir.remove_below(name, how));
            removed.map(drop).map_err(|e| e.to_string())
        };
        if phase.writes() || phase.deletes() {
            remove(&whole(phase.files))?;
        }
        if phase.writes() {
            remove(&format!("{DATA}/{}", phase.files))?;
        }
        for files in FILES {
            let created = dir.mkdir_all(&format!("{DATA}/{files}"));
            created.map_err(|e| e.to_string())?;
        }
        let state = dir.mkdir_all(STATE).map_err(|e| e.to_string())?;
        if io500::stamped_before(&self.phases) != Some(phase.name) {
            return Ok(());
        }
        stamp(&state).map_err(|e| format!("the time stamp cannot be made: {} ({e:?})", e.desc()))
    }
}

/// Creates the time stamp again.
fn stamp(state: &PosixFs) -> Result<(), Errno> {
    let name = CString::new(io500::STAMP).map_err(|_| Errno::EINVAL)?;
    match state.on_path(Call::Unlink, &name) {
        Ok(_) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(errno),
    }
    let file = state.open(&name, OpenFlags::CREATE_NEW)?;
    state.close(file)
}

/// Sign of a complete and unchanged set of files, in the run's directory.
fn whole(files: &str) -> String {
    format!("{STATE}/{files}.whole")
}

fn read(file: &Path, around: Around<'_>) -> Result<Settings, String> {
    let path = Path::new(&around.launch.cwd).join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|e| format!("--ini {} cannot be read: {e}", file.display()))?;
    io500::read(&text).map_err(|e| format!("--ini {} {e}", file.display()))
}

/// Name of an earlier launch's directory, if it is in the same parent.
fn name_in(earlier: &SeriesResult, parent: &str) -> Option<String> {
    let path = Path::new(earlier.dir.as_ref()?);
    let name = path.file_name()?.to_str()?;
    let same = path.parent() == Some(Path::new(parent));
    (same && name.starts_with(workdir::PREFIX)).then(|| name.to_owned())
}

/// The phases, without results. `foretold`: why the result will be invalid.
fn without_results(settings: &Settings, foretold: Vec<String>) -> Io500Result {
    let run = settings.phases();
    let of = |phase: &Phase| {
        let cell = run.iter().position(|run| run.name == phase.name);
        Io500Phase {
            name: phase.name.to_owned(),
            cell: cell.map(|cell| cell as u32),
            row: phase.row.to_owned(),
            figure: phase.figure.to_owned(),
            unit: phase.unit().to_owned(),
            scored: phase.scored,
            writes: phase.writes(),
            ..Io500Phase::default()
        }
    };
    Io500Result {
        stonewall_s: settings.stonewall_s(),
        required_s: settings.required_s(),
        foretold,
        phases: PHASES.iter().map(of).collect(),
        ..Io500Result::default()
    }
}

impl Course for Io500 {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn start(&self) -> Result<(), String> {
        let run_dir = match self.resumes {
            true => self.adopt()?,
            false => {
                let created = WorkDir::create(&self.parent, &self.name, &self.marker);
                Some(created.map_err(|e| e.to_string())?)
            }
        };
        *self.made.borrow_mut() = run_dir;
        if !self.quiet {
            self.outline
                .remarks
                .iter()
                .for_each(|remark| complain(remark));
        }
        Ok(())
    }

    /// Keeps cells while the files exist that later cells need.
    fn keeps(&self, earlier: &SeriesResult) -> u32 {
        let complete = (0..).take_while(|index| earlier.done(*index).is_some());
        let whole = |files: &str| self.is_whole(files);
        io500::kept(&self.phases, complete.count(), whole) as u32
    }

    fn next(&self, so_far: &SeriesResult) -> Option<(u32, Cell)> {
        let tried = |index: u32| so_far.cells.iter().any(|cell| cell.index == index);
        // A phase cannot run if its files were not written.
        let possible = |phase: &Phase| {
            let mut written = (0..).zip(&self.phases).filter(|(_, p)| p.writes());
            written.all(|(index, write)| !phase.needs(write.files) || so_far.done(index).is_some())
        };
        let mut all = (0..).zip(&self.phases);
        let (index, _) = all.find(|(index, phase)| !tried(*index) && possible(phase))?;
        Some((index, self.outline.cells.get(index as usize)?.clone()))
    }

    fn begin(&self, index: u32) -> Result<(), String> {
        let mut run_dir = self.made.borrow_mut();
        let dir = match run_dir.take() {
            Some(dir) => dir,
            None => WorkDir::create(&self.parent, &self.name, &self.marker)
                .map_err(|e| e.to_string())?,
        };
        let dir = run_dir.insert(dir);
        let phase = self.phases.get(index as usize);
        phase.map_or(Ok(()), |phase| self.prepare(dir, phase))
    }

    fn ended(&self, index: u32, so_far: &SeriesResult) -> Option<String> {
        let phase = self.phases.get(index as usize)?;
        if let Some(dir) = &*self.made.borrow()
            && phase.writes()
            && so_far.done(index).is_some()
            && let Err(error) = dir.mkdir_all(&whole(phase.files))
        {
            // Without the sign, a resumed run writes the files again.
            complain(&error.to_string());
        }
        let mut results = so_far.io500.iter().flat_map(|io500| &io500.phases);
        results
            .find(|result| result.name == phase.name)
            .map(io500_line)
    }

    fn over(&self, so_far: Option<&SeriesResult>, resumable: bool) {
        let run_dir = self.made.borrow_mut().take();
        // The built-in file system is dropped as a whole.
        let Some(dir) = run_dir.filter(|_| self.outline.embedded.is_none()) else {
            return;
        };
        let done = |so_far: &SeriesResult| {
            (0..self.phases.len() as u32).all(|index| so_far.done(index).is_some())
        };
        let stays = match so_far {
            Some(so_far) => resumable && !done(so_far),
            None => self.resumes,
        };
        if stays {
            if !self.quiet {
                complain(&format!(
                    "{} is kept for --resume; rbench clean {} removes it",
                    self.path().display(),
                    self.parent.display()
                ));
            }
            return;
        }
        if let Err(error) = Remover::new(REMOVING).with(|how| dir.remove(how)) {
            complain(&error.to_string());
        }
    }
}
