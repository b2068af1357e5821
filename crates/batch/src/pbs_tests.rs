//! Answers of OpenPBS 23.06.06, shortened by attributes that are not read.

use super::*;
use crate::System;
use std::time::UNIX_EPOCH;

const LISTED: &str = "\
Job Id: 4.rennes-head|Job_Name=never|Job_Owner=root@rennes-head|job_state=Q|queue=workq|schedselect=20:ncpus=1|\
substate=10|comment=Can Never Run: Insufficient amount of resource: ncpus (R: 20 A: 8 T: 8)|project=p
Job Id: 5.rennes-head|Job_Name=all|job_state=R|exec_host=rennes-1/0+rennes-1/1+rennes-2/0|\
stime=Fri Nov 27 14:28:18 2026|substate=42|comment=Job run at Fri Nov 27 at 14:28 on (rennes-1:ncpus=1)\\|x
Job Id: 10.rennes-head|Job_Name=waits|job_state=Q|comment=Not Running: Not enough free nodes available|\
estimated.exec_vnode=(rennes-1:ncpus=4)+(rennes-2:ncpus=2)|estimated.start_time=Fri Nov 27 14:30:37 2026
Job Id: 1.rennes-head|Job_Name=later|job_state=W|Execution_Time=Fri Jan  1 00:00:00 2027|substate=30
Job Id: 12.rennes-head|Job_Name=gone|job_state=E|exec_host=rennes-1/0
";

fn request(options: &[&str]) -> Request {
    Request {
        ranks: 16,
        minutes: 90,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    }
}

#[test]
fn an_allocation_is_used_while_it_runs() {
    let running = |id: &str| System::Pbs.running(id, LISTED).map_err(|error| error.to_string());
    assert_eq!(
        running("5.rennes-head").as_deref(),
        Ok("rennes-1/0+rennes-1/1+rennes-2/0")
    );
    assert_eq!(
        running("10.rennes-head").unwrap_err(),
        "allocation 10.rennes-head is not running: it is queued"
    );
    assert!(running("12.rennes-head").unwrap_err().ends_with("it is exiting"));
    assert!(running("5").unwrap_err().contains("no allocation 5"));
}

#[test]
fn a_job_that_waits_says_why_and_until_when() {
    let listed = listed(LISTED);
    let told = listed
        .iter()
        .map(|job| (job.reason.as_str(), job.start, job.is_refused));
    let told: Vec<_> = told.collect();
    assert!(told[0].2 && told[0].0.starts_with("Can Never Run: Insufficient"));
    assert_eq!(told[1].1, Some(1_795_789_698));
    assert_eq!(
        told[2],
        ("Not enough free nodes available", Some(1_795_789_837), false)
    );
    assert_eq!(
        told[3],
        ("the time at which it may begin", Some(1_798_761_600), false)
    );
    assert!(listed[4].has_ended() && !listed[3].has_ended() && listed[1].runs());
    assert_eq!(
        fields(LISTED.lines().nth(1).unwrap())["comment"]
            .rsplit(')')
            .next(),
        Some("|x")
    );
}

#[test]
fn a_request_becomes_words_of_qsub() {
    let now = UNIX_EPOCH + Duration::from_secs(1_795_789_747);
    let site = ["--queue=fast", "--resource=filesystems=home", "--chunk=mem=2gb"].map(str::to_owned);
    for option in &site {
        assert_eq!(check_option(option), Ok(()), "{option}");
    }
    let words = submit_words("causeway-1", &request(&["--queue=slow"]), (90, now), &site);
    let words = words.join(" ");
    for word in [
        "-q slow ",
        "-l filesystems=home ",
        "-l select=16:ncpus=1:mpiprocs=1:mem=2gb ",
        "-l walltime=1:30:00 ",
        "-N causeway-1",
        "-a 202611271430.37",
    ] {
        assert!(words.contains(word), "{words}");
    }
    assert!(!words.contains("fast"));
    for wrong in [
        "--queue",
        "-q",
        "--qos=x",
        "--resource=walltime=9",
        "--chunk=mem",
        "--wrap=id",
    ] {
        assert!(check_option(wrong).is_err(), "{wrong}");
    }
    assert!(is_never_chosen("resource").is_some() && is_never_chosen("queue").is_none());
    assert_eq!(submitted("0.rennes-head\n").as_deref(), Some("0.rennes-head"));
    assert_eq!(submitted("qsub: waiting"), None);
}

#[test]
fn a_node_has_slots_for_the_processes_of_its_chunks() {
    let nodes = |select: &str, list: &str| {
        let answer = format!("Job Id: 5.head|schedselect={select}|substate=42\n");
        let found = nodes("5.head", list, &[answer]).map_err(|error| error.to_string())?;
        let shown = found
            .iter()
            .map(|node| format!("{} {}", node.address, node.slots));
        Ok::<String, String>(shown.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(
        nodes("6:ncpus=1:mpiprocs=1", "a-1/0+a-1/1+a-1/2+a-1/3+a-2/0+a-2/1").as_deref(),
        Ok("a-1 4, a-2 2")
    );
    assert_eq!(
        nodes("2:ncpus=2:mpiprocs=2+1:ncpus=8", "a-1/1*2+a-2/0*2+a-3/0*8").as_deref(),
        Ok("a-1 2, a-2 2, a-3 1")
    );
    for (select, list) in [
        ("1:ncpus=1", "a-1/0+a-1/1"),
        ("4000000000:ncpus=1", "a-1/0"),
        ("many", "a-1/0"),
        ("1:mpiprocs=x", "a-1/0"),
        ("1:ncpus=1", "a-1"),
    ] {
        assert!(nodes(select, list).is_err(), "{select} {list}");
    }
}

#[test]
fn a_process_is_started_by_the_sites_own_way_and_becomes_one_of_the_job() {
    let shell = ["ssh", "{node}"].map(str::to_owned);
    let started = start("5.head", &shell, Some(Path::new("/run/pbs/pbs.conf")));
    assert_eq!(started.words, shell);
    assert_eq!(started.task[..2], ["/bin/sh", "-c"]);
    assert_eq!(started.task[3..], ["/run/pbs/pbs.conf", "5.head"]);
    assert!(is_of_a_process("PBS_JOBID") && is_of_a_process("PMI_RANK") && !is_of_a_process("PATH"));
}
