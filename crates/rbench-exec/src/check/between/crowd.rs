//! All clients append to one file, and list a directory that one of them changes.

use std::time::Duration;

use rbench_core::Nanos;
use rbench_sys::between::{
    RECORDS, Records, Stays, append, churn, listings, place, records, staying, stays,
};
use rbench_sys::promises::{Evidence, Verdict};

use super::{Clients, Counted, End, Pair, judged};

/// Time for which a client makes and removes names.
const DURING: Nanos = Nanos(500_000_000);

impl Clients<'_, '_> {
    pub(super) async fn append(&self, number: usize) -> Result<(Verdict, Counted), End> {
        let directory = self.directory(number, "");
        let path = directory.join("records");
        let made = path.clone();
        self.prepared(0, &directory, vec![path.clone()], move |_| place(&made))
            .await?;
        let (go, _) = self.group.instant().await?;
        let file = path.clone();
        self.each(|me| Some(move |stop: &dyn Fn() -> bool| append(&file, me, go, stop)))
            .await?;
        let (file, clients) = (path.clone(), self.asked.clients.len());
        let within = (self.asked.longest / 2).min(Duration::from_secs(10));
        let read = move |stop: &dyn Fn() -> bool| records(&file, clients, within, stop);
        let met = self.each(|_| Some(read)).await?;
        let mut worst = (0, Records::default(), 0);
        for (client, found) in met.into_iter().enumerate() {
            let found = found.ok_or_else(End::incomplete)?;
            // A record that is torn is not there either.
            let wrong = found.lost.saturating_add(found.twice).max(found.torn);
            if wrong > worst.0 {
                worst = (wrong, found, client);
            }
        }
        let (violations, found, client) = worst;
        let counted = Counted {
            tries: clients as u64 * RECORDS,
            violations,
            pairs: Vec::new(),
        };
        Ok(judged(counted, String::new(), || Evidence {
            expected: format!("{} records", clients as u64 * RECORDS),
            seen: format!(
                "{} lost, {} duplicated, {} fragments {}",
                found.lost,
                found.twice,
                found.torn,
                self.client(client)
            ),
            call: "write".to_owned(),
            errno: None,
            path,
        }))
    }

    pub(super) async fn listing(&self, number: usize) -> Result<(Verdict, Counted), End> {
        let mut counted = Counted::default();
        let mut example = None;
        for actor in 0..self.asked.clients.len() {
            let directory = self.directory(number, &format!("-{actor}"));
            self.prepared(actor, &directory, staying(&directory), stays)
                .await?;
            let (go, _) = self.group.instant().await?;
            let work = |me: usize| {
                Some(move |stop: &dyn Fn() -> bool| match me == actor {
                    true => churn(&directory, (go, DURING), stop).map(|()| Stays::default()),
                    false => listings(&directory, (go, DURING), stop),
                })
            };
            let met = self.each(work).await?.into_iter().enumerate();
            for (to, found) in met.filter(|(to, _)| *to != actor) {
                let found = found.ok_or_else(End::incomplete)?;
                let (tries, violations) = (found.listings, found.wrong);
                if violations > 0 {
                    example.get_or_insert(format!("{} {}", found.example, self.client(to)));
                }
                counted.tries += tries;
                counted.violations += violations;
                counted.pairs.push(Pair {
                    from: actor,
                    to,
                    tries,
                    violations,
                    worse: violations,
                    ..Pair::default()
                });
            }
        }
        let (tries, violations) = (counted.tries, counted.violations);
        Ok(judged(counted, String::new(), || Evidence {
            expected: "each unchanged name exactly once".to_owned(),
            seen: format!(
                "something else in {violations} of {tries} listings, such as {}",
                example.unwrap_or_default()
            ),
            call: "getdents64".to_owned(),
            errno: None,
            path: self.directory(number, ""),
        }))
    }
}
