//! Messages of threads to the control plane.

use std::cell::RefCell;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Receiver of messages; it also makes its senders, so that there is always one.
pub(crate) struct Inbox<T> {
    sender: UnboundedSender<T>,
    receiver: RefCell<UnboundedReceiver<T>>,
}

impl<T> Default for Inbox<T> {
    fn default() -> Inbox<T> {
        let (sender, receiver) = unbounded_channel();
        Inbox {
            sender,
            receiver: RefCell::new(receiver),
        }
    }
}

impl<T> Inbox<T> {
    /// Returns a way to send messages here.
    pub fn sender(&self) -> UnboundedSender<T> {
        self.sender.clone()
    }

    /// Resolves with the next message.
    pub async fn next(&self) -> Option<T> {
        std::future::poll_fn(|context| self.receiver.borrow_mut().poll_recv(context)).await
    }

    /// Returns the next message, if there is one.
    pub fn try_next(&self) -> Option<T> {
        self.receiver.borrow_mut().try_recv().ok()
    }
}
