//! The MPI communicator.
//!
//! [`session`] owns the start and the end of MPI, [`request`] pending operations and waiting for
//! them, [`notes`] the notes. This file builds the collectives on them. Everything runs on the
//! thread that started MPI. The compiler ensures this: all types here hold an `Rc`.

mod notes;
mod request;
mod roll_call;
mod session;
mod watch;

use std::cell::RefCell;
use std::ffi::c_int;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use ::mpi::ffi;
use rbench_core::Rank;

use self::notes::Notes;
use self::request::{Pauses, Pending};
use self::roll_call::RollCall;
use self::session::{Session, check, returns_errors};
pub(crate) use self::session::{keep_the_processor, library};
pub(crate) use self::watch::Watch;
use crate::arrival::Arrival;
use crate::communicator::{assert_fits, assert_member};
use crate::threads::solo;
use crate::{Combine, CommError, Communicator, Note, Wait};

/// Time limit of [`Communicator::send`] and [`Communicator::receive`].
const EXCHANGE_PATIENCE: Duration = Duration::from_secs(10);

/// Time that a dropped world waits for the other ranks.
const DROP_PATIENCE: Duration = Duration::from_secs(5);

/// The tag of [`Communicator::send`].
const EXCHANGE_TAG: c_int = 1;

/// The tag with which the ranks of a new group find each other. Open MPI sends with it on the
/// parent. So it must differ from the tags of this file, of the notes (0) and of the roll call (2
/// to 4).
const GROUP_TAG: c_int = 5;

/// Size of a broadcast's first message: the length (8 bytes) and the start of the content. Short
/// content needs no second message.
const HEAD_BYTES: usize = 256;

/// Content that fits into a broadcast's first message.
const HEAD_CONTENT_BYTES: usize = HEAD_BYTES - 8;

/// Numbers per message of a reduction, less than 64 KiB: Open MPI splits longer messages into
/// segments of 8 KiB, and each segment would wait for a poll.
const REDUCTION_NUMBERS: usize = 8_000;

/// Maximum number of messages per reduction, all pending at once; larger reductions use longer
/// messages.
const REDUCTION_MESSAGES: usize = 16;

/// The reduction of one message: this rank's numbers and the result.
type Reduction = Pending<(Vec<u64>, Vec<u64>)>;

/// MPI, from start to end.
pub(crate) struct MpiWorld {
    /// `None` after shutdown.
    communicator: Option<MpiCommunicator>,
}

/// A group of MPI ranks.
struct MpiCommunicator {
    session: Rc<Session>,
    raw: ffi::MPI_Comm,
    rank: Rank,
    size: u32,
    /// Only in the group of all ranks.
    notes: Option<RefCell<Notes>>,
}

impl fmt::Debug for MpiWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpiWorld").finish_non_exhaustive()
    }
}

impl MpiWorld {
    /// Initialises MPI and calls the roll. Takes the launcher's name and the number of ranks that
    /// it reports, if any.
    pub(crate) fn start(
        (launcher, launched_ranks): (Option<&str>, Option<u32>),
        arrival: &Arrival,
        watch: &Watch,
    ) -> Result<MpiWorld, CommError> {
        let session = Session::start()?;
        let mut communicator = MpiCommunicator::new(&session, session::world())?;
        let (me, size) = (communicator.rank, communicator.size);
        if let Some(launched) = launched_ranks.filter(|&launched| launched != size) {
            session.finalize()?;
            return Err(CommError::Start(format!(
                "{launcher} started {launched} ranks but the MPI library sees {size}: \
                 use the launcher of the MPI library that this program was built \
                 with (with srun, choose the right --mpi)",
                launcher = launcher.unwrap_or("the launcher"),
            )));
        }
        let call = RollCall {
            session: &session,
            me,
            size,
            arrival,
            watch,
        };
        call.run()?;
        let notes = Notes::open(&session, me, size)?;
        communicator.notes = Some(RefCell::new(notes));
        Ok(MpiWorld {
            communicator: Some(communicator),
        })
    }

    pub(crate) fn communicator(&self) -> &dyn Communicator {
        self.communicator
            .as_ref()
            .expect("only finish and drop take it, and nobody can call after those")
    }

    pub(crate) fn finish(mut self) -> Result<(), CommError> {
        self.close(None)
    }

    fn close(&mut self, patience: Option<Duration>) -> Result<(), CommError> {
        let Some(mut communicator) = self.communicator.take() else {
            return Ok(());
        };
        communicator.session.settle()?;
        if let Some(notes) = communicator.notes.take() {
            notes.into_inner().close(patience)?;
        }
        communicator.session.finalize()
    }

    pub(crate) fn abort(&self, code: i32) {
        session::abort(code);
    }
}

impl Drop for MpiWorld {
    fn drop(&mut self) {
        // A rank that panics must end the others: without MPI_Finalize, the launcher treats its
        // exit as abnormal.
        if !std::thread::panicking() {
            // Nobody is left to receive an error, but the launcher notices that MPI was not
            // finalized.
            let _ = self.close(Some(DROP_PATIENCE));
        }
    }
}

/// Number of elements of a message.
fn count(elements: usize, call: &'static str) -> Result<c_int, CommError> {
    c_int::try_from(elements).map_err(|_| CommError::Mpi {
        call,
        message: format!(
            "{elements} elements exceed the limit of {} per message",
            c_int::MAX
        ),
    })
}

/// Ensures that a buffer has an address of its own. Without an allocation, the address could be
/// that of another empty buffer, or MPI_IN_PLACE.
fn placed<T>(mut buffer: Vec<T>) -> Vec<T> {
    if buffer.capacity() == 0 {
        buffer.reserve(1);
    }
    buffer
}

/// MPI's operation for `combine`, and the type of the numbers from [`mapped`].
fn operation(combine: Combine) -> (ffi::MPI_Op, ffi::MPI_Datatype) {
    // SAFETY: constants of the MPI library.
    unsafe {
        match combine {
            Combine::Sum => (ffi::RSMPI_SUM, ffi::RSMPI_UINT64_T),
            Combine::Min => (ffi::RSMPI_MIN, ffi::RSMPI_INT64_T),
            Combine::Max => (ffi::RSMPI_MAX, ffi::RSMPI_INT64_T),
        }
    }
}

/// Maps numbers so that MPI compares them correctly, and maps them back: MPICH 4.0 compares
/// unsigned numbers as signed ones. Flipping the top bit makes the signed order the unsigned one.
fn mapped(combine: Combine, numbers: &[u64]) -> impl Iterator<Item = u64> {
    let flipped = match combine {
        Combine::Sum => 0,
        Combine::Min | Combine::Max => 1 << 63,
    };
    numbers.iter().map(move |number| number ^ flipped)
}

/// The MPI type of `u64`.
fn u64_type() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the MPI library.
    unsafe { ffi::RSMPI_UINT64_T }
}

/// The MPI type of `u8`.
fn u8_type() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the MPI library.
    unsafe { ffi::RSMPI_UINT8_T }
}

impl MpiCommunicator {
    fn new(session: &Rc<Session>, raw: ffi::MPI_Comm) -> Result<MpiCommunicator, CommError> {
        returns_errors(raw)?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `raw` is a communicator and `rank` receives the result.
        check("MPI_Comm_rank", unsafe {
            ffi::MPI_Comm_rank(raw, &raw mut rank)
        })?;
        // SAFETY: as above.
        check("MPI_Comm_size", unsafe {
            ffi::MPI_Comm_size(raw, &raw mut size)
        })?;
        Ok(MpiCommunicator {
            session: Rc::clone(session),
            raw,
            rank: Rank(rank as u32),
            size: size as u32,
            notes: None,
        })
    }

    /// Starts a non-blocking operation on `buffers`.
    fn start<B: 'static>(
        &self,
        call: &'static str,
        buffers: B,
        operation: impl FnOnce(&mut B, *mut ffi::MPI_Request) -> c_int,
    ) -> Result<Pending<B>, CommError> {
        Pending::start(&self.session, call, buffers, operation)
    }

    async fn enter_barrier(&self) -> Result<(), CommError> {
        self.start("MPI_Ibarrier", (), |(), request| {
            // SAFETY: a live communicator, and a location for the request.
            unsafe { ffi::MPI_Ibarrier(self.raw, request) }
        })?
        .complete()
        .await
    }

    /// Broadcasts `bytes`, whose length all ranks know.
    async fn broadcast_bytes(&self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>, CommError> {
        let length = count(bytes.len(), "MPI_Ibcast")?;
        self.start("MPI_Ibcast", bytes, |bytes, request| {
            let bytes = bytes.as_mut_ptr().cast();
            // SAFETY: `bytes` holds `length` bytes, which the pending operation keeps in place
            // until MPI is done with them.
            unsafe { ffi::MPI_Ibcast(bytes, length, u8_type(), root.0 as c_int, self.raw, request) }
        })?
        .complete()
        .await
    }

    async fn broadcast_content(&self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>, CommError> {
        let is_root = self.rank == root;
        let mut head = vec![0; HEAD_BYTES];
        if is_root {
            let begins = bytes.len().min(HEAD_CONTENT_BYTES);
            head[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            head[8..8 + begins].copy_from_slice(&bytes[..begins]);
        }
        let head = self.broadcast_bytes(root, head).await?;
        let (length, begins) = head.split_first_chunk::<8>().expect("more than 8 bytes");
        let length = u64::from_le_bytes(*length) as usize;
        if length > HEAD_CONTENT_BYTES {
            // A message that is too long is an error at every rank.
            count(length, "MPI_Ibcast")?;
            let content = if is_root { bytes } else { vec![0; length] };
            return self.broadcast_bytes(root, content).await;
        }
        Ok(if is_root {
            bytes
        } else {
            begins[..length].to_vec()
        })
    }

    /// Sends every rank's `number` to every rank, so that a gather that is too long is an error at
    /// every rank.
    async fn all_gather(&self, number: u64) -> Result<Vec<u64>, CommError> {
        let buffers = (vec![number], vec![0; self.size as usize]);
        let (_, numbers) = self
            .start("MPI_Iallgather", buffers, |(mine, all), request| {
                // SAFETY: one number from each of the `size` ranks; the
                // pending operation keeps both buffers in place.
                unsafe {
                    ffi::MPI_Iallgather(
                        mine.as_ptr().cast(),
                        1,
                        u64_type(),
                        all.as_mut_ptr().cast(),
                        1,
                        u64_type(),
                        self.raw,
                        request,
                    )
                }
            })?
            .complete()
            .await?;
        Ok(numbers)
    }

    async fn gather_content(
        &self,
        root: Rank,
        bytes: Vec<u8>,
    ) -> Result<Option<Vec<Vec<u8>>>, CommError> {
        const CALL: &str = "MPI_Igatherv";
        let lengths = self.all_gather(bytes.len() as u64).await?;
        count(lengths.iter().sum::<u64>() as usize, CALL)?;
        let is_root = self.rank == root;
        let own = count(bytes.len(), CALL)?;
        let mut counts = Vec::new();
        let mut starts = Vec::new();
        let mut total = 0;
        for &length in lengths.iter().filter(|_| is_root) {
            starts.push(total);
            counts.push(length as c_int);
            total += length as c_int;
        }
        let all = placed(vec![0_u8; total as usize]);
        let bytes = placed(bytes);
        let (_, all, counts, _) = self
            .start(
                CALL,
                (bytes, all, counts, starts),
                |(bytes, all, counts, starts), request| {
                    // SAFETY: `bytes` holds `own` bytes. At the root, `all` has room for
                    // `counts[r]` bytes from `starts[r]` for every rank r; elsewhere MPI ignores
                    // these. The pending operation keeps the four buffers in place.
                    unsafe {
                        ffi::MPI_Igatherv(
                            bytes.as_ptr().cast(),
                            own,
                            u8_type(),
                            all.as_mut_ptr().cast(),
                            counts.as_ptr(),
                            starts.as_ptr(),
                            u8_type(),
                            root.0 as c_int,
                            self.raw,
                            request,
                        )
                    }
                },
            )?
            .complete()
            .await?;
        let mut rest = all.as_slice();
        let parts = counts.iter().map(|&length| {
            let (part, after) = rest.split_at(length as usize);
            rest = after;
            part.to_vec()
        });
        let parts = parts.collect();
        Ok(is_root.then_some(parts))
    }

    /// Reduces `numbers`, at `root` or at every rank.
    async fn reduce_numbers(
        &self,
        root: Option<Rank>,
        combine: Combine,
        numbers: Vec<u64>,
    ) -> Result<Vec<u64>, CommError> {
        let of_message = numbers.len().div_ceil(REDUCTION_MESSAGES);
        let under_way = numbers
            .chunks(of_message.max(REDUCTION_NUMBERS))
            .map(|message| self.start_reduction(root, combine, message))
            .collect::<Result<Vec<_>, _>>()?;
        let mut result = Vec::with_capacity(numbers.len());
        for reduction in under_way {
            let (_, combined) = reduction.complete().await?;
            result.extend(mapped(combine, &combined));
        }
        Ok(result)
    }

    /// Starts the reduction of one message.
    fn start_reduction(
        &self,
        root: Option<Rank>,
        combine: Combine,
        numbers: &[u64],
    ) -> Result<Reduction, CommError> {
        let own: Vec<u64> = mapped(combine, numbers).collect();
        let all = vec![0; numbers.len()];
        let (operation, number_type) = operation(combine);
        let call = match root {
            Some(_) => "MPI_Ireduce",
            None => "MPI_Iallreduce",
        };
        let length = count(numbers.len(), call)?;
        let raw = self.raw;
        self.start(call, (own, all), |(own, all), request| {
            let (own, all) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
            // SAFETY: both buffers hold `length` numbers, and the pending operation keeps them in
            // place.
            unsafe {
                match root.map(|root| root.0 as c_int) {
                    Some(root) => ffi::MPI_Ireduce(
                        own,
                        all,
                        length,
                        number_type,
                        operation,
                        root,
                        raw,
                        request,
                    ),
                    None => {
                        ffi::MPI_Iallreduce(own, all, length, number_type, operation, raw, request)
                    }
                }
            }
        })
    }

    /// Creates the group of the ranks with the same `color`.
    ///
    /// MPI_Comm_split has no non-blocking form. If ranks outnumber processors, each of its many
    /// steps waits until every rank gets its turn. So the colours are gathered quietly first. A
    /// group of one needs no MPI, and a group of all is a non-blocking copy. Only other groups wait
    /// inside MPI, for their own members.
    async fn sub_group(&self, color: u32) -> Result<Box<dyn Communicator>, CommError> {
        let colors = self.all_gather(u64::from(color)).await?;
        let has_color = |rank: &c_int| colors[*rank as usize] == u64::from(color);
        let members: Vec<c_int> = (0..self.size as c_int).filter(has_color).collect();
        let raw = match members.len() {
            1 => return Ok(Box::new(solo())),
            all if all == self.size as usize => self.copy().await?,
            _ => self.of_members(&members)?,
        };
        Ok(Box::new(MpiCommunicator::new(&self.session, raw)?))
    }

    /// Creates another communicator of the same ranks.
    async fn copy(&self) -> Result<ffi::MPI_Comm, CommError> {
        let place = vec![session::no_communicator()];
        let copied = self.start("MPI_Comm_idup", place, |place, request| {
            // SAFETY: a live communicator, and a location for the new one, which the pending
            // operation keeps until the new one exists.
            unsafe { ffi::MPI_Comm_idup(self.raw, place.as_mut_ptr(), request) }
        })?;
        Ok(copied.complete().await?[0])
    }

    /// Creates a communicator of some ranks, in their order. All of these ranks must call this.
    fn of_members(&self, members: &[c_int]) -> Result<ffi::MPI_Comm, CommError> {
        // SAFETY: a constant of the MPI library.
        let (mut all, mut some) = unsafe { (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL) };
        let mut raw = session::no_communicator();
        let number = count(members.len(), "MPI_Group_incl")?;
        // SAFETY: a live communicator, and a location for its group.
        check("MPI_Comm_group", unsafe {
            ffi::MPI_Comm_group(self.raw, &raw mut all)
        })?;
        // SAFETY: `members` are `number` ranks of the group.
        let included = check("MPI_Group_incl", unsafe {
            ffi::MPI_Group_incl(all, number, members.as_ptr(), &raw mut some)
        });
        let created = included.and_then(|()| {
            // SAFETY: a group of ranks of the communicator; all of them make this call.
            let created = check("MPI_Comm_create_group", unsafe {
                ffi::MPI_Comm_create_group(self.raw, some, GROUP_TAG, &raw mut raw)
            });
            // SAFETY: the group is no longer used. An error would change nothing.
            unsafe { ffi::MPI_Group_free(&raw mut some) };
            created
        });
        // SAFETY: as above.
        unsafe { ffi::MPI_Group_free(&raw mut all) };
        created.map(|()| raw)
    }

    fn notes(&self) -> &RefCell<Notes> {
        self.notes.as_ref().expect("a sub-group has no notes")
    }
}

impl Drop for MpiCommunicator {
    fn drop(&mut self) {
        // The group of all ranks belongs to MPI and cannot be freed.
        if self.raw != session::world() {
            self.session.free(self.raw);
        }
    }
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn kind(&self) -> &'static str {
        "mpi"
    }

    fn barrier(&self) -> Wait<'_, ()> {
        Box::pin(self.enter_barrier())
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Vec<u8>> {
        Box::pin(self.broadcast_content(root, bytes))
    }

    fn gather(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Option<Vec<Vec<u8>>>> {
        Box::pin(self.gather_content(root, bytes))
    }

    fn reduce(
        &self,
        root: Rank,
        combine: Combine,
        numbers: Vec<u64>,
    ) -> Wait<'_, Option<Vec<u64>>> {
        Box::pin(async move {
            let result = self.reduce_numbers(Some(root), combine, numbers).await?;
            Ok((self.rank == root).then_some(result))
        })
    }

    fn all_reduce(&self, combine: Combine, numbers: Vec<u64>) -> Wait<'_, Vec<u64>> {
        Box::pin(self.reduce_numbers(None, combine, numbers))
    }

    fn split(&self, color: u32) -> Wait<'_, Box<dyn Communicator>> {
        assert!(color < 1 << 31, "the color {color} is not below 2^31");
        Box::pin(self.sub_group(color))
    }

    fn post(&self, to: Rank, content: Vec<u8>) {
        assert_member(to, self.size);
        assert_fits(&content);
        self.notes().borrow_mut().post(to, content);
    }

    fn next_note(&self) -> Wait<'_, Note> {
        let notes = self.notes();
        Box::pin(async {
            loop {
                let next = notes.borrow_mut().next();
                if let Some(note) = next? {
                    return Ok(note);
                }
                tokio::time::sleep(notes::POLL_INTERVAL).await;
            }
        })
    }

    fn send(&self, to: Rank, numbers: [u64; 2]) -> Result<(), CommError> {
        let way = (to, EXCHANGE_TAG);
        let sending = Pending::send(&self.session, self.raw, way, numbers.to_vec())?;
        sending.complete_busily(EXCHANGE_PATIENCE, to)?;
        Ok(())
    }

    fn receive(&self, from: Rank) -> Result<[u64; 2], CommError> {
        let way = (Some(from), EXCHANGE_TAG);
        let receiving = Pending::receive(&self.session, self.raw, way, vec![0_u64; 2])?;
        let numbers = receiving.complete_busily(EXCHANGE_PATIENCE, from)?;
        Ok([numbers[0], numbers[1]])
    }
}
