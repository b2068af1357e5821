use super::*;

struct Scene {
    supervisor: Supervisor,
    now: Instant,
}

impl Scene {
    fn new() -> Scene {
        let names = ["rennes", "nancy"].map(str::to_owned);
        Scene {
            supervisor: Supervisor::new(&names, &[], false),
            now: Instant::now(),
        }
    }

    fn joined(mut self) -> Scene {
        for site in 0..2 {
            let (processes, mpi) = (2, "MPI".to_owned());
            let event = Event::Joined { site, processes, mpi };
            self.supervisor.on_rendezvous(event, self.now);
        }
        self.supervisor
            .on_rendezvous(Event::Made { processes: 4 }, self.now);
        assert_eq!(self.orders(), []);
        self
    }

    fn event(&mut self, event: Event) -> Vec<Order> {
        self.supervisor.on_rendezvous(event, self.now);
        self.orders()
    }

    fn ended(&mut self, site: usize, status: u8) -> Vec<Order> {
        self.supervisor.on_ended(site, Ended::Status(status), self.now);
        self.orders()
    }

    /// Lets time pass until something is due.
    fn later(&mut self) -> Vec<Order> {
        self.now = self.supervisor.deadline().unwrap();
        self.supervisor.on_time(self.now);
        self.orders()
    }

    fn orders(&mut self) -> Vec<Order> {
        std::iter::from_fn(|| self.supervisor.poll_order()).collect()
    }
}

fn said(orders: &[Order]) -> &str {
    match orders.first() {
        Some(Order::Say(line)) => line,
        _ => panic!("{orders:?}"),
    }
}

#[test]
fn a_run_is_over_when_all_are_done_and_their_commands_have_ended() {
    let mut scene = Scene::new().joined();
    for site in 0..2 {
        assert_eq!(scene.event(Event::Done { site }), []);
        assert_eq!(scene.supervisor.status(), None);
        assert_eq!(scene.ended(site, 0), []);
    }
    assert_eq!(scene.supervisor.status(), Some(0));
}

#[test]
fn done_may_come_after_the_commands_end() {
    let mut scene = Scene::new().joined();
    assert_eq!(scene.ended(0, 0), []);
    assert_eq!(scene.event(Event::Done { site: 0 }), []);
    scene.event(Event::Done { site: 1 });
    scene.ended(1, 0);
    assert_eq!(
        (scene.supervisor.deadline(), scene.supervisor.status()),
        (None, Some(0))
    );
}

#[test]
fn a_command_that_ends_before_its_ranks_join_ends_the_others_by_name() {
    for (status, wanted) in [
        (0, "dynamically linked"),
        (127, "not found"),
        (3, "status 3 before"),
    ] {
        let mut scene = Scene::new();
        let orders = scene.ended(1, status);
        assert!(
            said(&orders).contains("site nancy") && said(&orders).contains(wanted),
            "{orders:?}"
        );
        assert!(orders.contains(&Order::Interrupt(0)) && !orders.contains(&Order::Interrupt(1)));
        scene.ended(0, 143);
        assert_eq!(scene.supervisor.status(), Some(status.max(1)));
    }
}

#[test]
fn a_command_that_ends_well_without_done_is_told_when_done_does_not_come() {
    let mut scene = Scene::new().joined();
    assert_eq!(scene.ended(0, 0), []);
    let orders = scene.later();
    assert!(said(&orders).contains("site rennes") && orders.contains(&Order::Interrupt(1)));
    scene.ended(1, 143);
    assert_eq!(scene.supervisor.status(), Some(1));
}

#[test]
fn a_command_that_ends_well_while_its_ranks_word_is_held_up_is_waited_for_until_that_cannot_come() {
    let mut scene = Scene::new().joined();
    assert_eq!(scene.ended(0, 0), []);
    assert!(scene.supervisor.deadline() > Some(scene.now + Duration::from_secs(30)));
    let orders = scene.event(Event::Lost { site: 0 });
    assert!(said(&orders).contains("status 0 before all its ranks had called MPI_Finalize"));
    let mut scene = Scene::new().joined();
    scene.event(Event::Lost { site: 0 });
    scene.ended(0, 0);
    assert!(scene.supervisor.deadline() < Some(scene.now + Duration::from_secs(1)));
}

#[test]
fn the_first_failing_sites_status_counts_and_is_told_once() {
    let mut scene = Scene::new().joined();
    assert_eq!(scene.ended(1, 9), []);
    let orders = scene.later();
    assert!(said(&orders).contains("status 9") && orders.contains(&Order::Interrupt(0)));
    assert_eq!(scene.ended(0, 3), []);
    assert_eq!(scene.supervisor.status(), Some(9));
}

#[test]
fn sites_that_fail_at_the_same_time_are_a_failure_too() {
    let mut scene = Scene::new().joined();
    scene.ended(0, 2);
    scene.ended(1, 2);
    assert_eq!(scene.supervisor.status(), None);
    assert!(said(&scene.later()).contains("site rennes"));
    assert_eq!(scene.supervisor.status(), Some(2));
}

#[test]
fn a_status_after_mpi_finalize_ends_nobody() {
    let mut scene = Scene::new().joined();
    scene.event(Event::Done { site: 0 });
    assert_eq!(scene.ended(0, 5), []);
    scene.event(Event::Done { site: 1 });
    scene.ended(1, 0);
    assert_eq!(scene.supervisor.status(), Some(5));
}

#[test]
fn an_abort_ends_the_others_at_once_and_its_own_site_when_it_does_not_end() {
    let mut scene = Scene::new().joined();
    let (code, text) = (7, "rank 3 called MPI_Abort(7)".to_owned());
    let orders = scene.event(Event::Aborted { site: 1, code, text });
    assert!(said(&orders).contains("site nancy: rank 3 called MPI_Abort(7)"));
    assert!(orders.contains(&Order::Interrupt(0)) && !orders.contains(&Order::Interrupt(1)));
    scene.ended(0, 143);
    assert_eq!(scene.later(), [Order::Interrupt(1)]);
    assert_eq!(scene.later(), [Order::End(1)]);
    scene.ended(1, 143);
    assert_eq!(scene.supervisor.status(), Some(7));
}

#[test]
fn the_launchers_own_status_of_an_abort_counts_when_it_comes_in_time() {
    let mut scene = Scene::new().joined();
    let (code, text) = (300, "x".to_owned());
    scene.event(Event::Aborted { site: 1, code, text });
    scene.ended(1, 44);
    scene.ended(0, 143);
    assert_eq!(scene.supervisor.status(), Some(44));
    let mut scene = Scene::new().joined();
    scene.ended(1, 44);
    let (code, text) = (300, "rank 3".to_owned());
    assert!(said(&scene.event(Event::Aborted { site: 1, code, text })).contains("rank 3"));
    scene.ended(0, 143);
    assert_eq!(scene.supervisor.status(), Some(44));
}

#[test]
fn a_lost_first_rank_is_told_unless_the_launcher_says_more() {
    let mut scene = Scene::new().joined();
    assert_eq!(scene.event(Event::Lost { site: 0 }), []);
    let orders = scene.later();
    assert!(said(&orders).contains("site rennes: its first rank ended before MPI_Finalize"));
    let mut scene = Scene::new().joined();
    scene.event(Event::Lost { site: 0 });
    scene.ended(0, 139);
    assert!(said(&scene.later()).contains("status 139"));
}

#[test]
fn what_cannot_be_a_world_ends_all_sites() {
    let mut scene = Scene::new();
    let reason = "site nancy: one by one".to_owned();
    let orders = scene.event(Event::Refused {
        site: Some(1),
        reason,
    });
    assert_eq!(said(&orders), "site nancy: one by one");
    scene.ended(0, 143);
    scene.ended(1, 0);
    assert_eq!(scene.supervisor.status(), Some(WRONG_USE));
}

#[test]
fn the_users_end_is_waited_for_and_a_second_one_is_not() {
    let mut scene = Scene::new().joined();
    scene.supervisor.on_signal(2, scene.now);
    let orders = scene.orders();
    assert!(
        orders.contains(&Order::Interrupt(0)) && orders.contains(&Order::Interrupt(1)),
        "{orders:?}"
    );
    scene.ended(0, 143);
    assert_eq!(scene.supervisor.status(), None);
    scene.supervisor.on_signal(2, scene.now);
    assert_eq!(scene.supervisor.status(), Some(130));
}

#[test]
fn a_site_that_does_not_say_that_it_has_ended_is_given_up() {
    let mut scene = Scene::new().joined();
    scene.supervisor.on_signal(15, scene.now);
    scene.orders();
    scene.ended(0, 143);
    assert_eq!(scene.later(), [Order::End(1)]);
    assert!(said(&scene.later()).contains("site nancy has not said"));
    assert_eq!(scene.supervisor.status(), Some(143));
}

#[test]
fn who_is_missing_is_told_to_those_who_ask() {
    let mut scene = Scene::new();
    scene.supervisor.is_verbose = true;
    let (site, processes, mpi) = (1, 2, "MPICH 4.0.2".to_owned());
    let orders = scene.event(Event::Joined { site, processes, mpi });
    assert_eq!(
        said(&orders),
        "site nancy has joined: 2 processes of MPICH 4.0.2; waiting for rennes"
    );
}
